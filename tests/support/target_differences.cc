#include "halftone/tests/support/target_differences.h"

#include <algorithm>

#include "halftone/core/status.h"
#include "halftone/graph/ir/op.h"
#include "halftone/kernels/registry_target.h"

namespace halftone::testing {
namespace {

bool IsComputed(const ir::OpRecord& op) {
  return !op.is_marker && op.name != "input" && op.name != "variable" && op.name != "constant" &&
         op.name != "commit" && op.name.rfind("test_", 0) != 0;
}

// Whether a node may have `dtype` as its main one: that of its first operand of floats.
bool MayBe(const ir::OpRecord& op, DType dtype) {
  for (const ir::InputSpec& input : op.inputs) {
    if (input.dtypes.Contains(DType::kF32)) return input.dtypes.Contains(dtype);
  }
  return false;
}

}  // namespace

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
    if (!IsComputed(*op)) continue;
    compare(op->name, target.CanRun(op->name), registered.CanRun(op->name));
    if (std::any_of(op->attrs.begin(), op->attrs.end(),
                    [](const ir::AttrSpec& attr) { return attr.name == "group"; })) {
      compare("groups of " + op->name, target.JoinsUpdates(op->name),
              registered.JoinsUpdates(op->name));
    }
    for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
      if (!MayBe(*op, dtype)) continue;
      compare(Concat(op->name, " in ", Name(dtype)), target.HasKernel(op->name, dtype),
              registered.HasKernel(op->name, dtype));
    }
  }
  return differences;
}

}  // namespace halftone::testing
