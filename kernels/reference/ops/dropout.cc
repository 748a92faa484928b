// dropout. The product is one of f32 for all dtypes below f64, so that every device gives the same
// bits.
#include "halftone/core/philox.h"
#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

RefRun MakeDropout(RefNode& node) {
  const int64_t size = node.in(0).num_elements();
  const double p = node.attrs.GetFloat("p");
  const bool f64 = node.inputs[0].dtype == DType::kF64;
  const double scale = f64 ? 1 / (1 - p) : static_cast<double>(static_cast<float>(1 / (1 - p)));
  const uint64_t seed = static_cast<uint64_t>(node.attrs.GetInt("seed"));
  return [=](const RefCall& call) {
    PhiloxCounter words{};
    for (int64_t i = 0; i < size; ++i) {
      if (i % 4 == 0) words = PhiloxBlock(seed, call.run_count(), static_cast<uint64_t>(i / 4));
      const bool keep = static_cast<double>(UniformFromBits(words[i % 4])) >= p;
      const double y = call.Load(0, i) * scale;
      call.Store(0, i, !keep ? 0 : f64 ? y : static_cast<double>(static_cast<float>(y)));
    }
  };
}

}  // namespace

void Register_reference_dropout(KernelRegistry& r) {
  AddReference(r, "dropout", ir::kFloats, MakeDropout);
}

}  // namespace halftone::kernels
