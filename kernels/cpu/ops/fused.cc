// fused: the kernels of its ops, tile by tile.
#include "halftone/kernels/cpu/support/native_kernel.h"
#include "halftone/kernels/cpu/support/fused_kernel.h"

namespace halftone::kernels {

void Register_cpu_fused(KernelRegistry& r) {
  const auto make = [&r](const ir::Node& step) { return r.Select(step, Device::Kind::kCpu); };
  AddNativeCandidate(r, "tiles", "fused", ir::kAnyDType, nullptr,
                     [make](const ir::Node& node) { return MakeFusedKernel(node, make); });
}

}  // namespace halftone::kernels
