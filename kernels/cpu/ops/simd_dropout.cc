// dropout: Philox words in vectors, one lane a group of four elements. The mask belongs to the
// row-major index; another layout takes the words one by one.
#include <algorithm>
#include <cmath>

#include "halftone/core/philox.h"
#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/dropout_fn.h"
#include "halftone/kernels/cpu/simd/philox-inl.h"
#include "halftone/kernels/cpu/simd/vectors-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

using V = F32Vec;

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
    PhiloxWords(step.seed, step.run, group, words);
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
    if (type_.layout != ir::Layout::kPlain) {
      switch (type_.dtype) {
        case DType::kF16:
          return RunPlanes<F16>(step, args);
        case DType::kBF16:
          return RunPlanes<BF16>(step, args);
        default:
          return RunPlanes<float>(step, args);
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
  void RunPlanes(const DropoutStep& step, const KernelArgs& args) const {
    const T* x = static_cast<const T*>(args.inputs[0]);
    T* y = static_cast<T*>(args.outputs[0]);
    const int64_t channels = type_.shape[1], plane = type_.shape[2] * type_.shape[3];
    // Channels that lie side by side: all, or those of a block.
    const int64_t side = type_.layout == ir::Layout::kChannelBlocks ? ir::kChannelBlock : channels;
    if (n_ == 0) return;
    const int64_t grain = std::max<int64_t>(1, kElementwiseGrain / 4 / plane);
    ParallelFor(0, type_.shape[0] * channels, grain, [&](int64_t first, int64_t last) {
      PhiloxCounter words{};
      for (int64_t nc = first; nc < last; ++nc) {
        const int64_t start = nc / side * plane * side + nc % side;
        for (int64_t p = 0; p < plane; ++p) {
          const int64_t i = nc * plane + p, at = start + p * side;
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
