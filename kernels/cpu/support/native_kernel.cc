#include "halftone/kernels/cpu/support/native_kernel.h"

namespace halftone::kernels {

absl::Status SameLayouts(const ir::Node& node) {
  const ir::ValueType& y = node.output_type();
  for (const ir::Value& v : node.inputs()) {
    if (v.type().layout != y.layout) return Unimplemented("layouts differ");
    if (v.dtype() != y.dtype) return Unimplemented("dtypes differ");
    if (v.shape() != y.shape) return Unimplemented("shapes differ");
  }
  return absl::OkStatus();
}

void AddNativeCandidate(
    KernelRegistry& r, const std::string& how, const std::string& op, ir::DTypeSet dtypes,
    std::function<absl::Status(const ir::Node&)> supports,
    std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const ir::Node&)> create) {
  KernelCandidate candidate;
  candidate.name = "cpu:" + how + ":" + op;
  candidate.op = op;
  candidate.tier = how == "scalar" ? KernelTier::kFallback : KernelTier::kNative;
  candidate.dtypes = dtypes;
  candidate.supports = [dtypes,
                        supports = std::move(supports)](const ir::Node& node) -> absl::Status {
    if (node.num_inputs() > 0 && !dtypes.Contains(node.input_type(0).dtype)) {
      return Unimplemented("no kernel in ", Name(node.input_type(0).dtype));
    }
    return supports ? supports(node) : absl::OkStatus();
  };
  candidate.create = [create = std::move(create)](const ir::Node& node) {
    InitSimdDispatch();
    return create(node);
  };
  r.Add(std::move(candidate));
}

}  // namespace halftone::kernels
