// dropout: Philox words in vectors, one lane a group of four elements. The mask belongs to the
// row-major index; another layout takes the words one by one.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "halftone/kernels/cpu/ops/simd_dropout.cc"
#include "halftone/kernels/cpu/simd/targets.h"
// Highway reads the macro that the line above defines.
#include <hwy/foreach_target.h>
// The rest is included once per target.
#include <algorithm>
#include <cmath>

#include "halftone/core/philox.h"
#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/dropout_fn.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

using V = F32Vec;

// Words of the kLanes groups from `group` on, in element order.
#if HWY_TARGET == HWY_SCALAR
void WordsOf(const DropoutStep& step, uint64_t group, uint32_t* words) {
  const PhiloxCounter block = PhiloxBlock(step.seed, step.run, group);
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
void WordsOf(const DropoutStep& step, uint64_t group, uint32_t* words) {
  const U32Tag d;
  const auto first = static_cast<uint32_t>(group);
  if (first > UINT32_MAX - kLanes) {  // the carry into the upper half falls among the lanes
    for (size_t i = 0; i < kLanes; ++i) {
      const PhiloxCounter block = PhiloxBlock(step.seed, step.run, group + i);
      std::copy(block.begin(), block.end(), words + 4 * i);
    }
    return;
  }
  Words c0 = hn::Iota(d, first), c1 = hn::Set(d, static_cast<uint32_t>(group >> 32));
  Words c2 = hn::Set(d, static_cast<uint32_t>(step.run));
  Words c3 = hn::Set(d, static_cast<uint32_t>(step.run >> 32));
  auto key0 = static_cast<uint32_t>(step.seed), key1 = static_cast<uint32_t>(step.seed >> 32);
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

HWY_INLINE V Kept(const DropoutStep& step, V x, const uint32_t* words) {
  const auto bits = hn::BitCast(I32Tag(), hn::ShiftRight<8>(hn::LoadU(U32Tag(), words)));
  const auto kept = hn::Gt(bits, hn::Set(I32Tag(), step.threshold - 1));
  return hn::IfThenElseZero(hn::RebindMask(F32Tag(), kept),
                            hn::Mul(x, hn::Set(F32Tag(), step.scale)));
}

template <typename T>
void DropoutRange(const DropoutStep& step, const void* x_data, void* y_data, uint64_t group,
                  int64_t n) {
  const T* x = static_cast<const T*>(x_data);
  T* y = static_cast<T*>(y_data);
  constexpr int64_t kStep = kLanes;
  uint32_t words[4 * kLanes];
  for (int64_t begin = 0; begin < n; begin += 4 * kStep, group += kLanes) {
    WordsOf(step, group, words);
    const int64_t count = std::min(4 * kStep, n - begin);
    int64_t i = 0;
    for (; i + kStep <= count; i += kStep) {
      StoreVec(Kept(step, LoadVec(x + begin + i), words + i), y + begin + i);
    }
    if (i < count) {
      StorePart(Kept(step, LoadPart(x + begin + i, count - i), words + i), y + begin + i,
                count - i);
    }
  }
}

DropoutFn FindDropout(DType dtype) {
  return dtype == DType::kF32   ? DropoutRange<float>
         : dtype == DType::kF16 ? DropoutRange<F16>
                                : DropoutRange<BF16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindDropout);

class DropoutKernel : public Kernel {
 public:
  explicit DropoutKernel(const ir::Node& node)
      : type_(node.output_type()),
        n_(type_.num_elements()),
        size_(static_cast<int64_t>(SizeOf(type_.dtype))),
        fn_(HWY_DYNAMIC_DISPATCH(FindDropout)(type_.dtype)) {
    const double p = node.attrs().GetFloat("p");
    step_.seed = static_cast<uint64_t>(node.attrs().GetInt("seed"));
    // u * 2^-24 >= p for whole u.
    step_.threshold = static_cast<int32_t>(std::ceil(p * 0x1p24));
    step_.scale = static_cast<float>(1 / (1 - p));
  }

  // y may be x in place.
  void Run(const KernelArgs& args) override {
    DropoutStep step = step_;
    step.run = args.state->run_count;
    if (type_.layout == ir::Layout::kChannelsLast) {
      switch (type_.dtype) {
        case DType::kF16:
          return RunLast<F16>(step, args);
        case DType::kBF16:
          return RunLast<BF16>(step, args);
        default:
          return RunLast<float>(step, args);
      }
    }
    ParallelFor(0, (n_ + 3) / 4, kElementwiseGrain / 16, [&](int64_t first, int64_t last) {
      fn_(step, static_cast<const char*>(args.inputs[0]) + 4 * first * size_,
          static_cast<char*>(args.outputs[0]) + 4 * first * size_, static_cast<uint64_t>(first),
          std::min(4 * last, n_) - 4 * first);
    });
  }

 private:
  // In row-major order, plane by plane: the words come in order, the elements do not.
  template <typename T>
  void RunLast(const DropoutStep& step, const KernelArgs& args) const {
    const T* x = static_cast<const T*>(args.inputs[0]);
    T* y = static_cast<T*>(args.outputs[0]);
    const int64_t channels = type_.shape[1], plane = type_.shape[2] * type_.shape[3];
    if (n_ == 0) return;
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / 4 / plane);
    ParallelFor(0, type_.shape[0] * channels, grain, [&](int64_t first, int64_t last) {
      PhiloxCounter words{};
      for (int64_t nc = first; nc < last; ++nc) {
        const int64_t start = nc / channels * plane * channels + nc % channels;
        for (int64_t p = 0; p < plane; ++p) {
          const int64_t i = nc * plane + p, at = start + p * channels;
          if (p == 0 || i % 4 == 0) {
            words = PhiloxBlock(step.seed, step.run, static_cast<uint64_t>(i / 4));
          }
          const bool kept = static_cast<int32_t>(words[i % 4] >> 8) >= step.threshold;
          y[at] = static_cast<T>(kept ? static_cast<float>(x[at]) * step.scale : 0.0f);
        }
      }
    });
  }

  ir::ValueType type_;
  int64_t n_, size_;
  DropoutFn fn_;
  DropoutStep step_;
};

}  // namespace

void Register_cpu_simd_dropout(KernelRegistry& r) {
  AddSimdCandidate<DropoutKernel>(r, "dropout", LayoutOfInput);
}

}  // namespace halftone::kernels
#endif
