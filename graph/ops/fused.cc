// fused: a tree of elementwise ops as one op.

#include "halftone/graph/ops/support/fused_body.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

// Requires: inference has read the same body.
FusedBody BodyOf(const ir::Attributes& attrs, size_t num_inputs) {
  auto body = FusedBody::Parse(attrs.GetString("body"), static_cast<int>(num_inputs));
  HT_CHECK(body.ok(), "the body of a fused node does not parse");
  return *std::move(body);
}

Types InferFused(const ir::InferContext& ctx) {
  const auto body =
      FusedBody::Parse(ctx.attrs.GetString("body"), static_cast<int>(ctx.inputs.size()));
  if (!body.ok()) return InvalidArgument(ctx.op, ": body ", Message(body.status()));
  HT_ASSIGN_OR_RETURN(const std::vector<ir::ValueType> types, body->Infer(ctx.op, ctx.inputs));
  return std::vector<ir::ValueType>{types.back()};
}

// A step costs what its record says of an element.
ir::Cost CostOfFused(const ir::Node& node) {
  ir::Cost cost;
  for (const ir::Value& input : node.inputs()) {
    cost.bytes += static_cast<double>(input.type().num_bytes());
  }
  cost.bytes += static_cast<double>(node.output_type().num_bytes());
  const FusedBody body = BodyOf(node.attrs(), node.inputs().size());
  ir::Graph steps;
  ir::Builder b(&steps);
  std::vector<ir::Expr> inputs;
  for (const ir::Value& input : node.inputs()) inputs.push_back(b.Input("x", input.type()));
  for (const ir::Expr& step : body.Build(b, inputs)) {
    cost.flops += ir::CostOf(*step.value().node).flops;
  }
  return cost;
}

}  // namespace

void Register_fused(ir::OpRegistry& registry) {
  std::vector<std::string> names;
  for (int i = 0; i < kMaxFusedInputs; ++i) names.push_back(Concat("x", i));
  ir::OpRecord op = ElementwiseOp(
      "fused", names, ir::kAnyDType,
      "y = the elementwise ops of `body`, calls of one another, in which %0 is x0, %1 is x1 and so "
      "on. Each rounds as it does alone and has the shape of y; inputs have it too, or that of its "
      "last extents in memory, or one element; beside channels in blocks that of the channels alone. "
      "Made by the pass `fuse`",
      "graph/ops/support/fused_body.h",
      Untouched("made when precision is decided, and each op of the body has its own dtype",
                {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}));
  for (size_t i = 1; i < op.inputs.size(); ++i) op.inputs[i].optional = true;
  op.attrs = {Required("body", ir::AttrType::kString, "what it computes")};
  op.infer = InferFused;
  op.cost = CostOfFused;
  op.decompose = [](ir::Builder& b, const std::vector<ir::Expr>& inputs,
                    const ir::Attributes& attrs) {
    return std::vector<ir::Expr>{BodyOf(attrs, inputs.size()).Build(b, inputs).back()};
  };
  AddOp(registry, std::move(op));
}

}  // namespace halftone::ops
