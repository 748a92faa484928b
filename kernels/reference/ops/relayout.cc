// relayout: operands know their storage order, so the elements move by their row-major numbers.
#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {

void Register_reference_relayout(KernelRegistry& r) {
  AddReference(r, "relayout", ir::kAnyDType, [](RefNode& node) -> RefRun {
    return [size = node.out(0).num_elements()](const RefCall& call) {
      for (int64_t i = 0; i < size; ++i) call.Copy(0, i, 0, i);
    };
  });
}

}  // namespace halftone::kernels
