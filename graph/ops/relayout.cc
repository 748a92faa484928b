// relayout: the same rank-4 tensor stored in another order. Made by the layout pass.
#include "halftone/core/check.h"
#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/op.h"

namespace halftone::ops {
namespace {

const char* WordOf(ir::Layout layout) { return layout == ir::Layout::kPlain ? "plain" : "nhwc"; }

absl::StatusOr<std::vector<ir::ValueType>> InferRelayout(const ir::InferContext& ctx) {
  ir::ValueType y = ctx.inputs[0];
  if (y.shape.rank() != 4) {
    return InvalidArgument(ctx.op, ": x is ", y, "; expected rank 4");
  }
  const std::string& to = ctx.attrs.GetString("to");
  if (to != "nhwc" && to != "plain") {
    return InvalidArgument(ctx.op, ": attribute to is \"", to,
                           "\"; expected \"nhwc\" or \"plain\"");
  }
  y.layout = to == "nhwc" ? ir::Layout::kChannelsLast : ir::Layout::kPlain;
  return std::vector<ir::ValueType>{y};
}

}  // namespace

void Register_relayout(ir::OpRegistry& registry) {
  ir::OpRecord op;
  op.name = "relayout";
  op.doc = "y = x, stored in the order `to`. The logical shape stays [N,C,H,W].";
  op.source = "Halftone";
  op.inputs = {{"x", ir::kAnyDType, "[N,C,H,W]"}};
  op.outputs = {{"y", "[N,C,H,W]"}};
  op.attrs = {{"to", ir::AttrType::kString, std::nullopt, "\"nhwc\" (channels last) or \"plain\""}};
  op.infer = InferRelayout;
  op.amp.f16 = op.amp.bf16 = ir::AmpClass::kClear;
  op.amp.reason = "moves values and changes none";
  // Names no port: it reads and writes whatever layouts its types say.
  op.layout.kind = ir::LayoutClass::kChannelsLast;
  op.gradient = [](ir::GradContext& ctx) {
    const ir::Layout layout = ctx.in(0).type().layout;
    ctx.set_dx(0, ctx.b.Op("relayout", {ctx.dy(0)}, {{"to", std::string(WordOf(layout))}}));
  };
  op.gradient_ops = {"relayout"};
  HT_CHECK(registry.Register(std::move(op)).ok(), "relayout does not register");
}

}  // namespace halftone::ops
