#include "halftone/tests/support/op_coverage.h"

#include <algorithm>

namespace halftone::testing {
namespace {

using kernels::KernelCandidate;

std::string GradientLackedBy(const ir::OpRecord& op, const std::vector<OpCase>& cases) {
  if (!op.no_gradient.empty()) {
    return op.gradient ? "a gradient, beside a reason for none\n" : "";
  }
  if (!op.gradient && !op.decompose) return "no gradient, and no reason for none\n";
  const bool is_checked = std::any_of(
      cases.begin(), cases.end(), [&op](const OpCase& c) { return c.op == op.name && c.gradient; });
  return is_checked ? "" : "a gradient that no case of tests/op_cases checks\n";
}

}  // namespace

bool IsComputed(const ir::OpRecord& op) {
  return !op.is_marker && op.name != "input" && op.name != "variable" && op.name != "constant" &&
         op.name != "commit";
}

bool MayBeOf(const ir::OpRecord& op, DType dtype) {
  for (const ir::InputSpec& input : op.inputs) {
    if (input.dtypes.Contains(DType::kF32)) return input.dtypes.Contains(dtype);
    if (input.dtypes.Contains(DType::kF8)) return false;  // of 8 bits alone
  }
  return false;
}

std::string LackedBy(const ir::OpRecord& op, const std::vector<OpCase>& cases) {
  std::string lines;
  if (op.doc.empty()) lines += "no description\n";
  if (op.source.empty()) lines += "no source\n";
  if (op.amp.reason.empty()) lines += "no reason for its AMP class\n";
  if (!IsComputed(op)) return lines;
  if (std::none_of(cases.begin(), cases.end(),
                   [&op](const OpCase& c) { return c.op == op.name; })) {
    lines += "no case in tests/op_cases\n";
  }
  return lines + GradientLackedBy(op, cases);
}

std::string KernelsLackedBy(const ir::OpRecord& op, Device::Kind device,
                            const kernels::KernelRegistry& registry) {
  std::vector<const KernelCandidate*> candidates = registry.Candidates(op.name, device);
  // The CPU runs the reference's kernels where it has none: right, and slow.
  std::erase_if(candidates, [device](const auto* c) { return c->device != device; });
  if (!IsComputed(op)) return candidates.empty() ? "" : "a kernel of what is not computed\n";
  if (device == Device::Kind::kReference) {
    return candidates.size() == 1 ? "" : Concat(candidates.size(), " reference kernels\n");
  }
  if (op.decompose) return "";
  const std::string name = Device{device}.ToString();
  if (candidates.empty()) return Concat("no kernel for ", name, ", and no decomposition\n");
  std::string lines;
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    if (!MayBeOf(op, dtype) ||
        std::any_of(candidates.begin(), candidates.end(),
                    [dtype](const auto* c) { return c->dtypes.Contains(dtype); })) {
      continue;
    }
    lines += Concat("no kernel for ", name, " in ", Name(dtype), ", and no decomposition\n");
  }
  return lines;
}

}  // namespace halftone::testing
