#include "halftone/kernels/cpu/simd/update_rounding.h"

#include <algorithm>

#include "halftone/kernels/cpu/simd/philox-inl.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/update_rounding.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

void WidenRange(const BF16* x, float* y, int64_t n) {
  MapVec(x, y, n, [](F32Vec v) { return v; });
}

void CompensateRange(const BF16* param, const BF16* compensation, float* y, int64_t n) {
  MapVec2(param, compensation, y, n, [](F32Vec p, F32Vec c) {
    const auto most = hn::Mul(hn::Abs(c), hn::Set(F32Tag(), 256.0f));
    return hn::IfThenElse(hn::Le(most, hn::Abs(p)), hn::Add(p, c), p);
  });
}

// RoundStochastically of v, and 16 bits in each lane.
HWY_INLINE F32Vec Rounded(F32Vec v, hn::Vec<U32Tag> random) {
  const U32Tag du;
  const auto bits = hn::BitCast(du, v);
  const auto nan = hn::RebindMask(du, hn::IsNaN(v));
  const auto either =
      hn::IfThenElse(nan, hn::Or(bits, hn::Set(du, 0x400000)), hn::Add(bits, random));
  return hn::BitCast(F32Tag(), hn::And(either, hn::Set(du, 0xFFFF0000)));
}

void RoundRange(const RoundingStream& stream, int64_t first, const float* x, BF16* y, int64_t n) {
  constexpr int64_t kStep = kLanes;
  const U32Tag du;
  uint32_t words[4 * kLanes];
  int64_t skip = first % 4;  // words in front, of elements that are not asked for
  for (int64_t i = 0; i < n;) {
    PhiloxWords(stream.seed, stream.step, RoundingGroup(stream.result, first + i), words);
    const int64_t end = std::min(n, i + 4 * kStep - skip);
    for (int64_t w = skip; i < end; w += kStep) {
      const int64_t count = std::min({kStep, end - i, 4 * kStep - w});
      uint32_t part[kLanes] = {};
      if (count < kStep) std::copy_n(words + w, count, part);
      const auto word = hn::LoadU(du, count < kStep ? part : words + w);
      const auto random =
          stream.result % 2 == 0 ? hn::And(word, hn::Set(du, 0xFFFF)) : hn::ShiftRight<16>(word);
      if (count < kStep) {
        StorePart(Rounded(LoadPart(x + i, count), random), y + i, count);
      } else {
        StoreVec(Rounded(LoadVec(x + i), random), y + i);
      }
      i += count;
    }
    skip = 0;
  }
}

void SplitRange(const float* x, BF16* param, BF16* compensation, int64_t n) {
  ForRow(n, [&](auto load, auto store) {
    const F32Vec v = load(x);
    store(v, param);
    const F32Vec lost = hn::Sub(v, load(param));
    store(hn::IfThenElseZero(hn::IsFinite(lost), lost), compensation);
  });
}

UpdateRoundingFns FindFns() { return {WidenRange, CompensateRange, RoundRange, SplitRange}; }

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {

HWY_EXPORT(FindFns);

UpdateRoundingFns FindUpdateRounding() { return HWY_DYNAMIC_DISPATCH(FindFns)(); }

}  // namespace halftone::kernels
#endif
