// dropout: zeroes random elements.
#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {
namespace {

Types InferDropout(const ir::InferContext& ctx) {
  const double p = ctx.attrs.GetFloat("p");
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "p", p >= 0 && p <= 1, "0..1"));
  return InferLikeFirst(ctx);
}

}  // namespace

void Register_dropout(ir::OpRegistry& registry) {
  ir::OpRecord r;
  r.name = "dropout";
  r.doc =
      "y = x s where kept, else 0, with s = 1 / (1 - p) rounded to f32 and the product "
      "in f32 (both in f64 for f64). "
      "Element i in row-major order of the logical shape, whatever the layout, "
      "takes word i mod 4 of PhiloxBlock(seed, run_count, i / 4) and "
      "is kept if the word's upper 24 bits, times 2^-24, are at least p. "
      "The mask is a function of (seed, run_count, i) alone: "
      "the same on every device and in every dtype. Shapes: x and y alike. "
      "Its gradient is the same op on dy.";
  r.source =
      "Srivastava et al.: \"Dropout\", JMLR 15, 2014 (inverted scaling); "
      "https://pytorch.org/docs/stable/generated/torch.nn.Dropout.html";
  r.inputs = {{"x", ir::kFloats, "any shape"}};
  r.outputs = {{"y", "as x"}};
  r.attrs = {{"p", ir::AttrType::kFloat, std::nullopt, "probability of a zero, 0..1"},
             {"seed", ir::AttrType::kInt, std::nullopt, "key of the random stream"}};
  r.infer = InferDropout;
  r.amp = Infer("one multiplication; the mask does not depend on the dtype");
  r.range = [](const ir::Node& node, const std::vector<ir::ValueRange>& in) {
    const double kept = 1 - node.attrs().GetFloat("p");
    return in[0] * ir::ValueRange::Between(0, kept > 0 ? 1 / kept : 0);
  };
  r.fusion = ir::FusionClass::kElementwise;
  r.layout.kind = ir::LayoutClass::kFollows;
  r.layout.channel_blocks = true;
  r.in_place = {{0, 0}};
  r.cost = FlopsPerInput(1);
  r.gradient = [](ir::GradContext& ctx) {
    if (ctx.need(0)) ctx.set_dx(0, ctx.b.Op("dropout", {ctx.dy(0)}, ctx.attrs()));
  };
  r.gradient_ops = {"dropout"};
  r.is_random = true;
  AddOp(registry, std::move(r));
}

}  // namespace halftone::ops
