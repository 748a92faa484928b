#include "halftone/passes/amp/verify_amp_dtypes.h"

#include <set>

#include "halftone/passes/amp/amp_graph.h"

namespace halftone::passes {
namespace {

absl::Status CheckPort(const ir::Node& node, const char* port, int index, DType got,
                       DType expected) {
  if (got == expected) return absl::OkStatus();
  return Internal("verify-amp-dtypes: ", node.Label(), ", decided ", Name(node.amp.dtype), ": ",
                  port, " ", index, " is ", Name(got), "; expected ", Name(expected));
}

absl::Status CheckLowNode(const ir::Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    const DType dtype = node.input_type(i).dtype;
    if (!IsFloat(dtype)) continue;
    HT_RETURN_IF_ERROR(
        CheckPort(node, "input", i, dtype, IsMainInput(node, i) ? node.amp.dtype : DType::kF32));
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    const DType dtype = node.output_type(i).dtype;
    // An op may leave 16-bit operands in f32 by an attribute (an absorbed cast).
    if (!IsFloat(dtype) || (dtype == DType::kF32 && IsMainOutput(node, i))) continue;
    HT_RETURN_IF_ERROR(
        CheckPort(node, "output", i, dtype, IsMainOutput(node, i) ? node.amp.dtype : DType::kF32));
  }
  return absl::OkStatus();
}

absl::Status CheckF32Node(const ir::Node& node) {
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!IsLoweredValue(node.input(i))) continue;
    HT_RETURN_IF_ERROR(CheckPort(node, "input", i, node.input_type(i).dtype, DType::kF32));
  }
  return absl::OkStatus();
}

using CastKey = std::pair<std::pair<int64_t, int>, DType>;

absl::Status CheckCast(const ir::Node& cast, std::set<CastKey>* seen) {
  const ir::Value from = cast.input(0);
  const DType to = cast.output_type().dtype;
  if (!IsFloat(from.dtype()) || !IsFloat(to) || from.dtype() == to) {
    return Internal("verify-amp-dtypes: ", cast.Label(), " casts ", Name(from.dtype()), " to ",
                    Name(to), "; expected two floats");
  }
  if (IsAmpCast(*from.node)) {
    return Internal("verify-amp-dtypes: ", cast.Label(), " undoes ", from.node->Label());
  }
  if (!seen->insert({{from.node->id(), from.index}, to}).second) {
    return Internal("verify-amp-dtypes: ", cast.Label(), " is a second cast of %",
                    from.node->name(), " to ", Name(to));
  }
  return absl::OkStatus();
}

class VerifyAmpDTypesPass : public Pass {
 public:
  const char* name() const override { return "verify-amp-dtypes"; }
  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext&) override {
    HT_RETURN_IF_ERROR(VerifyAmpDTypes(graph));
    return false;
  }
};

}  // namespace

absl::Status VerifyAmpDTypes(const ir::Graph& graph) {
  std::set<CastKey> seen;
  for (const auto& node : graph.nodes()) {
    if (IsAmpCast(*node)) {
      HT_RETURN_IF_ERROR(CheckCast(*node, &seen));
    } else if (node->amp.decided) {
      HT_RETURN_IF_ERROR(IsLow(node->amp.dtype) ? CheckLowNode(*node) : CheckF32Node(*node));
    }
  }
  return absl::OkStatus();
}

std::unique_ptr<Pass> MakeVerifyAmpDTypes() { return std::make_unique<VerifyAmpDTypesPass>(); }

}  // namespace halftone::passes
