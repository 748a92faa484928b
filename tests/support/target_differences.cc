#include "halftone/tests/support/target_differences.h"

#include <algorithm>

#include "halftone/core/status.h"
#include "halftone/graph/ir/op.h"
#include "halftone/kernels/registry_target.h"
#include "halftone/tests/support/op_coverage.h"

namespace halftone::testing {

std::vector<std::string> TargetDifferences(const ir::Target& target, Device::Kind device) {
  const kernels::RegistryTarget registered(kernels::KernelRegistry::Global(), device, "registry");
  std::vector<std::string> differences;
  const auto compare = [&](const std::string& what, bool has, bool is_registered) {
    if (has == is_registered) return;
    differences.push_back(Concat(
        what, is_registered ? ": a kernel is registered, but " : ": no kernel is registered, but ",
        target.name(), has ? " has one" : " has none"));
  };
  for (const ir::OpRecord* op : ir::OpRegistry::Global().All()) {
    if (!IsComputed(*op) || op->name.rfind("test_", 0) == 0) continue;
    compare(op->name, target.CanRun(op->name), registered.CanRun(op->name));
    if (std::any_of(op->attrs.begin(), op->attrs.end(),
                    [](const ir::AttrSpec& attr) { return attr.name == "group"; })) {
      compare("groups of " + op->name, target.JoinsUpdates(op->name),
              registered.JoinsUpdates(op->name));
    }
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      if (!MayBeOf(*op, dtype)) continue;
      compare(Concat(op->name, " in ", Name(dtype)), target.HasKernel(op->name, dtype),
              registered.HasKernel(op->name, dtype));
    }
  }
  return differences;
}

}  // namespace halftone::testing
