// Apart from the registry itself: a module with kernels of its own links that, and none of these.
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

KernelRegistry& KernelRegistry::Global() {
  static KernelRegistry* const registry = [] {
    auto* r = new KernelRegistry();
    RegisterBuiltinKernels(*r);
    return r;
  }();
  return *registry;
}

}  // namespace halftone::kernels
