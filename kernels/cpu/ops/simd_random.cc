// random_uniform random_normal bernoulli: words in vectors, numbers of them a block at a time.
#include <algorithm>

#include "halftone/core/threads.h"
#include "halftone/kernels/cpu/ops/random_fn.h"
#include "halftone/kernels/cpu/simd/philox-inl.h"
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/numeric_types.h"
#include "halftone/kernels/normal_pair.h"
#include "halftone/kernels/supports.h"

HWY_BEFORE_NAMESPACE();
namespace halftone::kernels {
namespace HWY_NAMESPACE {

void RandomWords(uint64_t seed, uint64_t run, uint64_t group, uint32_t* words) {
  static_assert(kRandomGroups % kLanes == 0);
  for (int64_t g = 0; g < kRandomGroups; g += kLanes) {
    PhiloxWords(seed, run, group + static_cast<uint64_t>(g), words + 4 * g);
  }
}

RandomWordsFn FindRandomWords() { return RandomWords; }

}  // namespace HWY_NAMESPACE
}  // namespace halftone::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace halftone::kernels {
namespace {

HWY_EXPORT(FindRandomWords);

constexpr int64_t kBlock = 4 * kRandomGroups;  // elements

// The arithmetic of a dtype: f32 for 16 bit.
template <typename T>
using Arithmetic = std::conditional_t<std::is_same_v<T, double>, double, float>;

class RandomKernel : public Kernel {
 public:
  explicit RandomKernel(const ir::Node& node)
      : dtype_(node.output_type().dtype),
        size_(node.output_type().num_elements()),
        seed_(static_cast<uint64_t>(node.attrs().GetInt("seed"))),
        words_(HWY_DYNAMIC_DISPATCH(FindRandomWords)()) {}

 protected:
  // Calls make(T(), x, y, words, count) for blocks of elements, x null where there is no input.
  template <typename Make>
  void RunBlocks(const KernelArgs& args, const void* input, const Make& make) const {
    ForNumericType(dtype_, [&](auto zero) {
      using T = decltype(zero);
      const T* x = static_cast<const T*>(input);
      T* y = static_cast<T*>(args.outputs[0]);
      const int64_t blocks = (size_ + kBlock - 1) / kBlock;
      ParallelFor(0, blocks, 2, [&](int64_t first, int64_t last) {
        uint32_t words[kBlock];
        for (int64_t block = first; block < last; ++block) {
          words_(seed_, args.state->run_count, static_cast<uint64_t>(block * kRandomGroups), words);
          const int64_t at = block * kBlock;
          make(zero, x == nullptr ? x : x + at, y + at, words, std::min(kBlock, size_ - at));
        }
      });
    });
  }

 private:
  DType dtype_;
  int64_t size_;
  uint64_t seed_;
  RandomWordsFn words_;
};

class UniformKernel : public RandomKernel {
 public:
  explicit UniformKernel(const ir::Node& node)
      : RandomKernel(node), low_(node.attrs().GetFloat("low")) {
    range_ = node.attrs().GetFloat("high") - low_;
  }

  void Run(const KernelArgs& args) override {
    RunBlocks(args, nullptr, [this](auto zero, auto*, auto* y, const uint32_t* words, int64_t n) {
      using T = decltype(zero);
      using V = Arithmetic<T>;
      const V low = static_cast<V>(low_), range = static_cast<V>(range_);
      for (int64_t i = 0; i < n; ++i) {
        y[i] = static_cast<T>(low + range * static_cast<V>(UniformFromBits(words[i])));
      }
    });
  }

 private:
  double low_, range_;
};

class NormalKernel : public RandomKernel {
 public:
  explicit NormalKernel(const ir::Node& node)
      : RandomKernel(node),
        mean_(node.attrs().GetFloat("mean")),
        std_(node.attrs().GetFloat("std")) {}

  void Run(const KernelArgs& args) override {
    RunBlocks(args, nullptr, [this](auto zero, auto*, auto* y, const uint32_t* words, int64_t n) {
      using T = decltype(zero);
      using V = Arithmetic<T>;
      const V mean = static_cast<V>(mean_), std = static_cast<V>(std_);
      for (int64_t i = 0; i < n; i += 2) {
        const NormalPairF64 z = NormalPairOf(words[i], words[i + 1]);
        y[i] = static_cast<T>(mean + std * static_cast<V>(z.first));
        if (i + 1 < n) y[i + 1] = static_cast<T>(mean + std * static_cast<V>(z.second));
      }
    });
  }

 private:
  double mean_, std_;
};

class BernoulliKernel : public RandomKernel {
 public:
  explicit BernoulliKernel(const ir::Node& node) : RandomKernel(node) {}

  void Run(const KernelArgs& args) override {
    RunBlocks(args, args.inputs[0],
              [](auto zero, const auto* x, auto* y, const uint32_t* words, int64_t n) {
                using T = decltype(zero);
                for (int64_t i = 0; i < n; ++i) {
                  const bool drawn =
                      static_cast<double>(UniformFromBits(words[i])) < static_cast<double>(x[i]);
                  y[i] = static_cast<T>(drawn ? 1.0f : 0.0f);
                }
              });
  }
};

}  // namespace

void Register_cpu_simd_random(KernelRegistry& r) {
  AddNativeCandidate<UniformKernel>(r, "simd", "random_uniform", ir::kFloats, PlainThroughout);
  AddNativeCandidate<NormalKernel>(r, "simd", "random_normal", ir::kFloats, PlainThroughout);
  AddNativeCandidate<BernoulliKernel>(r, "simd", "bernoulli", ir::kFloats, PlainThroughout);
}

}  // namespace halftone::kernels
#endif
