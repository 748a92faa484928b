// random_uniform random_normal bernoulli. Below f64 the arithmetic is that of f32, so that every
// device gives the same bits.
#include "halftone/core/philox.h"
#include "halftone/kernels/normal_pair.h"
#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

// Calls store(i, words of the group of 4 that i is in).
template <typename Store>
void ForElements(uint64_t seed, uint64_t run, int64_t size, const Store& store) {
  PhiloxCounter words{};
  for (int64_t i = 0; i < size; ++i) {
    if (i % 4 == 0) words = PhiloxBlock(seed, run, static_cast<uint64_t>(i / 4));
    store(i, words);
  }
}

uint64_t SeedOf(const RefNode& node) { return static_cast<uint64_t>(node.attrs.GetInt("seed")); }

RefRun MakeUniform(RefNode& node) {
  const double low = node.attrs.GetFloat("low"), high = node.attrs.GetFloat("high");
  const bool wide = node.outputs[0].dtype == DType::kF64;
  return [=, seed = SeedOf(node), size = node.out(0).num_elements()](const RefCall& call) {
    ForElements(seed, call.run_count(), size, [&](int64_t i, const PhiloxCounter& words) {
      const float u = UniformFromBits(words[i % 4]);
      const float first = static_cast<float>(low), range = static_cast<float>(high - low);
      call.Store(0, i,
                 wide ? low + (high - low) * static_cast<double>(u)
                      : static_cast<double>(first + range * u));
    });
  };
}

RefRun MakeNormal(RefNode& node) {
  const double mean = node.attrs.GetFloat("mean"), std = node.attrs.GetFloat("std");
  const bool wide = node.outputs[0].dtype == DType::kF64;
  return [=, seed = SeedOf(node), size = node.out(0).num_elements()](const RefCall& call) {
    ForElements(seed, call.run_count(), size, [&](int64_t i, const PhiloxCounter& words) {
      const auto pair = static_cast<size_t>(i % 4 / 2 * 2);
      const NormalPairF64 both = NormalPairOf(words[pair], words[pair + 1]);
      const double z = i % 2 == 0 ? both.first : both.second;
      const float low = static_cast<float>(std) * static_cast<float>(z);
      call.Store(0, i, wide ? mean + std * z : static_cast<double>(static_cast<float>(mean) + low));
    });
  };
}

RefRun MakeBernoulli(RefNode& node) {
  return [seed = SeedOf(node), size = node.out(0).num_elements()](const RefCall& call) {
    ForElements(seed, call.run_count(), size, [&](int64_t i, const PhiloxCounter& words) {
      const bool drawn = static_cast<double>(UniformFromBits(words[i % 4])) < call.Load(0, i);
      call.Store(0, i, drawn ? 1 : 0);
    });
  };
}

}  // namespace

void Register_reference_random(KernelRegistry& r) {
  AddReference(r, "random_uniform", ir::kFloats, MakeUniform);
  AddReference(r, "random_normal", ir::kFloats, MakeNormal);
  AddReference(r, "bernoulli", ir::kFloats, MakeBernoulli);
}

}  // namespace halftone::kernels
