// sum mean max over axes, argmax over one.

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::GradContext;

ir::OpRecord ReductionOp(const char* name, ir::DTypeSet dtypes, const char* doc, const char* source,
                         ir::AmpTrait amp) {
  ir::OpRecord op;
  op.name = name;
  op.doc = doc;
  op.source = source;
  op.inputs = {{"x", dtypes, ""}};
  op.outputs = {{"y", ""}};
  op.attrs = {Required("axes", ir::AttrType::kInts, "axes reduced, negative from the end; []: all"),
              Optional("keepdim", false, "keep reduced axes with extent 1")};
  op.amp = std::move(amp);
  op.fusion = ir::FusionClass::kReduction;
  op.cost = FlopsPerInput(1);
  return op;
}

Axes AxesOfNode(const ir::Node& node) {
  return CheckedAxes(node.attrs().GetInts("axes"), node.input_type(0).shape.rank());
}

int64_t CountOf(const Shape& shape, const Axes& axes) {
  int64_t count = 1;
  for (int axis : axes) count *= shape[axis];
  return count;
}

// `y` of a reduction of c's node, with the reduced axes back as 1, so that it broadcasts to x.
Expr Kept(GradContext& c, Expr y) {
  return ReshapeTo(y, ReducedShape(c.in(0).shape(), AxesOfNode(c.node), true));
}

Types InferSum(const ir::InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  HT_ASSIGN_OR_RETURN(const Axes axes, AxesOf(ctx, "axes", x));
  HT_ASSIGN_OR_RETURN(const DType out, OutDType(ctx, x.dtype));
  return OneType(out, ReducedShape(x.shape, axes, ctx.attrs.GetBool("keepdim")));
}

Types InferMax(const ir::InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  HT_ASSIGN_OR_RETURN(const Axes axes, AxesOf(ctx, "axes", x));
  Shape shape = ReducedShape(x.shape, axes, ctx.attrs.GetBool("keepdim"));
  if (CountOf(x.shape, axes) == 0 && shape.num_elements() > 0) {
    return OpError(ctx, "no maximum over the empty axes of ", x, "; expected extents above 0");
  }
  return OneType(x.dtype, std::move(shape));
}

Types InferArgmax(const ir::InferContext& ctx) {
  const ir::ValueType& x = ctx.inputs[0];
  HT_ASSIGN_OR_RETURN(const int axis, AxisOf(ctx, "axis", x));
  Shape shape = ReducedShape(x.shape, {axis}, ctx.attrs.GetBool("keepdim"));
  if (x.shape[axis] == 0 && shape.num_elements() > 0) {
    return OpError(ctx, "no maximum over the empty axis ", axis, " of ", x,
                   "; expected an extent above 0");
  }
  return OneType(DType::kI64, std::move(shape));
}

// Whether the value, through results of one element, is what a marker (the loss) or the caller
// gets.
bool IsReported(const ir::Node& node) {
  if (node.output_type(0).num_elements() != 1) return false;
  const ir::UseMap uses(node.graph());
  std::vector<const ir::Node*> todo = {&node};
  while (!todo.empty()) {
    const ir::Node* at = todo.back();
    todo.pop_back();
    for (int i = 0; i < at->num_outputs(); ++i) {
      if (at->output_type(i).num_elements() != 1) continue;
      if (uses.is_output(at->output(i))) return true;
      for (const ir::UseMap::Use& use : uses.uses(at->output(i))) {
        if (use.node->op().is_marker) return true;
        todo.push_back(use.node);
      }
    }
  }
  return false;
}

std::optional<ir::AmpRefinement> DenyMeanAsLoss(const ir::Node& node, DType) {
  if (!IsReported(node)) return std::nullopt;
  return ir::AmpRefinement{ir::AmpClass::kDeny, "is the loss or a reported number"};
}

ir::OpRecord SumOp() {
  ir::OpRecord op =
      ReductionOp("sum", ir::kNumeric,
                  "y = sum of x over `axes`, 0 over none; "
                  "accumulates in f32, integers exactly, f64 in f64. Gradient: dy broadcast",
                  "NumPy: sum", DenyF16("a sum of 16-bit values leaves f16's range"));
  op.attrs.push_back(OutAttr());
  op.range = [](const ir::Node& node, const std::vector<ir::ValueRange>& in) {
    const auto n = static_cast<double>(CountOf(node.input_type(0).shape, AxesOfNode(node)));
    return in[0] * ir::ValueRange::Between(n, n);
  };
  op.infer = InferSum;
  op.gradient = [](GradContext& c) {
    c.set_dx(0, BroadcastTo(CastTo(Kept(c, c.dy(0)), c.in(0).dtype()), c.in(0).shape()));
  };
  op.gradient_ops = {"reshape", "cast", "broadcast_to"};
  return op;
}

ir::OpRecord MeanOp() {
  ir::OpRecord op = ReductionOp("mean", ir::kFloats,
                                "y = sum of x over `axes` / n, n the number of elements summed; "
                                "accumulates in f32, f64 in f64. Over no element: NaN. Gradient: "
                                "dy / n broadcast",
                                "NumPy: mean",
                                InferAcc("the mean fits where the values do; the sum stays inside, "
                                         "in f32"));
  op.attrs.push_back(OutAttr());
  op.amp.refine = DenyMeanAsLoss;
  op.range = [](const ir::Node&, const std::vector<ir::ValueRange>& in) { return in[0]; };
  op.infer = InferSum;
  // n may lie beyond f16's range: the division is done wide, on the small side of the broadcast.
  op.gradient = [](GradContext& c) {
    const Expr x = c.in(0);
    const double n = static_cast<double>(CountOf(x.shape(), AxesOfNode(c.node)));
    const Expr share = CastTo(Widened(Kept(c, c.dy(0))) / n, x.dtype());
    c.set_dx(0, BroadcastTo(share, x.shape()));
  };
  op.gradient_ops = {"reshape", "cast", "div", "broadcast_to"};
  op.decompose = [](ir::Builder& b, const std::vector<Expr>& in, const ir::Attributes& attrs) {
    const Axes axes = CheckedAxes(attrs.GetInts("axes"), in[0].shape().rank());
    const double n = static_cast<double>(CountOf(in[0].shape(), axes));
    // f16 would overflow in the sum and in n.
    const DType out = attrs.GetString("out").empty() ? in[0].dtype() : DType::kF32;
    return std::vector<Expr>{
        CastTo(b.Op("sum", {Widened(in[0])},
                    {{"axes", attrs.GetInts("axes")}, {"keepdim", attrs.GetBool("keepdim")}}) /
                   n,
               out)};
  };
  return op;
}

ir::OpRecord MaxOp() {
  ir::OpRecord op =
      ReductionOp("max", ir::kNumeric,
                  "y = largest x over `axes`, NaN if any is. "
                  "Gradient: dy shared equally by the elements that reach the maximum",
                  "NumPy: max; gradient as PyTorch: amax", Clear("selects: exact in every dtype"));
  op.infer = InferMax;
  // The number of ties may lie beyond f16's range: counted and divided wide.
  op.gradient = [](GradContext& c) {
    const Expr x = c.in(0);
    const Expr dy = Widened(Kept(c, c.dy(0)));
    const Expr reached = Equal(x, Kept(c, c.out(0)));
    const Expr ties = c.b.Op("sum", {CastTo(reached, dy.valid() ? dy.dtype() : DType::kF32)},
                             {{"axes", c.attrs().GetInts("axes")}, {"keepdim", true}});
    const Expr share = CastTo(dy / ties, x.dtype());
    c.set_dx(0, Where(reached, share, Number(share, 0)));
  };
  op.gradient_ops = {"reshape", "cast", "equal", "sum", "div", "where"};
  return op;
}

ir::OpRecord ArgmaxOp() {
  ir::OpRecord op;
  op.name = "argmax";
  op.doc = "y = index of the largest x along `axis`, the first of equals; NaN counts as largest";
  op.source = "NumPy: argmax";
  op.inputs = {{"x", ir::kNumeric, ""}};
  op.outputs = {{"y", "i64"}};
  op.attrs = {Required("axis", ir::AttrType::kInt, "axis reduced, negative from the end"),
              Optional("keepdim", false, "keep the axis with extent 1")};
  op.amp = Clear("a narrower dtype would make ties; runs in the dtype that arrives");
  op.fusion = ir::FusionClass::kReduction;
  op.cost = FlopsPerInput(1);
  op.no_gradient = kGivesWhole;
  op.infer = InferArgmax;
  return op;
}

}  // namespace

void Register_reduction(ir::OpRegistry& r) {
  AddOp(r, SumOp());
  AddOp(r, MeanOp());
  AddOp(r, MaxOp());
  AddOp(r, ArgmaxOp());
}

}  // namespace halftone::ops
