// Words of core/philox.h in vectors, a lane a group of four.
#if defined(HALFTONE_SIMD_PHILOX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef HALFTONE_SIMD_PHILOX_INL_H_
#undef HALFTONE_SIMD_PHILOX_INL_H_
#else
#define HALFTONE_SIMD_PHILOX_INL_H_
#endif

#include <algorithm>

#include "halftone/core/philox.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

// The words of the kLanes groups from `group` on of the stream (seed, run), in element order.
#if HWY_TARGET == HWY_SCALAR
HWY_INLINE void PhiloxWords(uint64_t seed, uint64_t run, uint64_t group, uint32_t* words) {
  const PhiloxCounter block = PhiloxBlock(seed, run, group);
  std::copy(block.begin(), block.end(), words);
}
#else
using Words = hn::Vec<U32Tag>;

// The two halves of the 64-bit products of each lane with `factor`.
HWY_INLINE void MultiplyWide(Words x, uint32_t factor, Words* high, Words* low) {
  const U32Tag d;
  const hn::Repartition<uint64_t, U32Tag> wide;
  const Words f = hn::Set(d, factor);
  const auto even = hn::MulEven(x, f);
  const auto odd = hn::MulEven(hn::BitCast(d, hn::ShiftRight<32>(hn::BitCast(wide, x))), f);
  const auto lower = hn::Set(wide, 0xFFFFFFFFu);
  *low = hn::BitCast(d, hn::Or(hn::And(even, lower), hn::ShiftLeft<32>(odd)));
  *high = hn::BitCast(d, hn::Or(hn::ShiftRight<32>(even), hn::AndNot(lower, odd)));
}

// Philox4x32-10 as in core/philox.cc.
HWY_INLINE void PhiloxWords(uint64_t seed, uint64_t run, uint64_t group, uint32_t* words) {
  const U32Tag d;
  const auto first = static_cast<uint32_t>(group);
  if (first > UINT32_MAX - kLanes) {  // the carry into the upper half falls among the lanes
    for (size_t i = 0; i < kLanes; ++i) {
      const PhiloxCounter block = PhiloxBlock(seed, run, group + i);
      std::copy(block.begin(), block.end(), words + 4 * i);
    }
    return;
  }
  Words c0 = hn::Iota(d, first), c1 = hn::Set(d, static_cast<uint32_t>(group >> 32));
  Words c2 = hn::Set(d, static_cast<uint32_t>(run));
  Words c3 = hn::Set(d, static_cast<uint32_t>(run >> 32));
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    Words high0, low0, high1, low1;
    MultiplyWide(c0, 0xD2511F53, &high0, &low0);
    MultiplyWide(c2, 0xCD9E8D57, &high1, &low1);
    c0 = hn::Xor(hn::Xor(high1, c1), hn::Set(d, key0));
    c2 = hn::Xor(hn::Xor(high0, c3), hn::Set(d, key1));
    c1 = low1;
    c3 = low0;
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  hn::StoreInterleaved4(c0, c1, c2, c3, d, words);
}
#endif

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#endif  // HALFTONE_SIMD_PHILOX_INL_H_
