// relayout: the same rank-4 tensor stored in another order. Made by the layout pass.
#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

Types InferRelayout(const ir::InferContext& ctx) {
  ir::ValueType y = ctx.inputs[0];
  if (y.shape.rank() != 4) return OpError(ctx, "x is ", y, "; expected rank 4");
  const std::string& to = ctx.attrs.GetString("to");
  const std::optional<ir::Layout> layout = ir::ParseLayout(to);
  if (!layout.has_value()) {
    return OpError(ctx, "attribute to is \"", to,
                   "\"; expected \"plain\", \"nhwc\" or \"nchw16c\"");
  }
  if (!ir::CanLie(y.shape, *layout)) return OpError(ctx, ir::WhyItCannotLie(y, *layout));
  y.layout = *layout;
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
  op.attrs = {Required("to", ir::AttrType::kString,
                       "\"plain\", \"nhwc\" (channels last) or "
                       "\"nchw16c\" (channels in blocks of 16)")};
  op.infer = InferRelayout;
  op.amp = Clear("moves values and changes none");
  // Names no port: it reads and writes whatever layouts its types say.
  op.layout.kind = ir::LayoutClass::kChannelsLast;
  op.layout.channel_blocks = true;
  op.gradient = [](ir::GradContext& ctx) {
    const ir::Layout layout = ctx.in(0).type().layout;
    ctx.set_dx(0, ctx.b.Op("relayout", {ctx.dy(0)}, {{"to", std::string(ir::Name(layout))}}));
  };
  op.gradient_ops = {"relayout"};
  AddOp(registry, std::move(op));
}

}  // namespace halftone::ops
