// add sub mul div maximum minimum pow: y = f(a, b), element by element, with NumPy's broadcasting.

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::GradContext;

ir::OpRecord BinaryOp(std::string name, ir::DTypeSet dtypes, std::string doc, std::string source,
                      ir::AmpTrait amp) {
  doc += "; a and b broadcast as in NumPy";
  ir::OpRecord op = ElementwiseOp(std::move(name), {"a", "b"}, dtypes, std::move(doc),
                                  std::move(source), std::move(amp));
  op.infer = [](const ir::InferContext& ctx) { return InferBroadcast(ctx); };
  return op;
}

// The adjoint of broadcasting operand i.
void SetOperand(GradContext& c, int i, Expr dx) { c.set_dx(i, SumTo(dx, c.in(i).shape())); }

// The op that decides how large a value can be: the producer, seen through ops that only move or
// select. Null for inputs, variables and constants.
const ir::Node* RangeSource(ir::Value value, DType low) {
  const ir::Node* node = value.node;
  while (node->num_inputs() > 0) {
    const ir::AmpTrait& amp = node->op().amp;
    const ir::AmpClass amp_class = low == DType::kF16 ? amp.f16 : amp.bf16;
    if (amp_class != ir::AmpClass::kClear) return node;
    node = node->input(0).node;
  }
  return nullptr;
}

std::optional<ir::AmpRefinement> DenyDivisionByReduction(const ir::Node& node, DType low) {
  const ir::Node* source = RangeSource(node.input(1), low);
  if (source == nullptr) return std::nullopt;
  const ir::AmpTrait& amp = source->op().amp;
  const ir::AmpClass amp_class = low == DType::kF16 ? amp.f16 : amp.bf16;
  const bool reduction = source->op().fusion == ir::FusionClass::kReduction;
  if (!reduction && amp_class != ir::AmpClass::kDeny) return std::nullopt;
  return ir::AmpRefinement{ir::AmpClass::kDeny, Concat("divides by the result of ", source->Label(),
                                                       ", which may be large or vanish")};
}

std::optional<ir::AmpRefinement> DenySquareInF16(const ir::Node& node, DType low) {
  if (low != DType::kF16 || node.input(0) != node.input(1)) return std::nullopt;
  return ir::AmpRefinement{ir::AmpClass::kDeny, "a square: values above 256 overflow f16"};
}

void AddArithmetic(ir::OpRegistry& r) {
  const ir::AmpTrait follows = Infer("one rounding; follows its neighbours");

  ir::OpRecord add =
      BinaryOp("add", ir::kNumeric, "y = a + b; integers wrap", "IEEE 754: addition", follows);
  add.gradient = [](GradContext& c) {
    SetOperand(c, 0, c.dy(0));
    SetOperand(c, 1, c.dy(0));
  };
  add.gradient_ops = {"sum_to_shape"};
  AddOp(r, std::move(add));

  ir::OpRecord sub =
      BinaryOp("sub", ir::kNumeric, "y = a - b; integers wrap", "IEEE 754: subtraction", follows);
  sub.gradient = [](GradContext& c) {
    SetOperand(c, 0, c.dy(0));
    if (c.need(1)) SetOperand(c, 1, -c.dy(0));
  };
  sub.gradient_ops = {"neg", "sum_to_shape"};
  AddOp(r, std::move(sub));

  ir::OpRecord mul =
      BinaryOp("mul", ir::kNumeric, "y = a b; integers wrap", "IEEE 754: multiplication", follows);
  mul.amp.refine = DenySquareInF16;
  mul.gradient = [](GradContext& c) {
    if (c.need(0)) SetOperand(c, 0, c.dy(0) * c.in(1));
    if (c.need(1)) SetOperand(c, 1, c.dy(0) * c.in(0));
  };
  mul.gradient_ops = {"mul", "sum_to_shape"};
  AddOp(r, std::move(mul));

  ir::OpRecord div = BinaryOp("div", ir::kFloats, "y = a / b", "IEEE 754: division", follows);
  div.amp.refine = DenyDivisionByReduction;
  div.gradient = [](GradContext& c) {
    const Expr da = c.dy(0) / c.in(1);
    SetOperand(c, 0, da);
    if (c.need(1)) SetOperand(c, 1, -(da * c.out(0)));
  };
  div.gradient_ops = {"div", "mul", "neg", "sum_to_shape"};
  AddOp(r, std::move(div));
}

// dx of operand i of a selection: dy where it was selected, half of it on a tie. `loses` holds
// where the other operand was selected.
void SetSelected(GradContext& c, int i, Expr loses) {
  const Expr dy = c.dy(0);
  const Expr won = Where(Equal(c.in(0), c.in(1)), dy * 0.5, dy);
  SetOperand(c, i, Where(loses, Number(dy, 0), won));
}

void AddSelection(ir::OpRegistry& r) {
  const ir::AmpTrait exact = Clear("selects an operand: exact in every dtype");
  const std::vector<std::string> gradient_ops = {"less", "equal", "where", "mul", "sum_to_shape"};

  ir::OpRecord maximum = BinaryOp("maximum", ir::kNumeric,
                                  "y = the larger of a and b, NaN if either is; a tie gives each "
                                  "operand half of the gradient",
                                  "NumPy: maximum; gradient as PyTorch", exact);
  maximum.gradient = [](GradContext& c) {
    if (c.need(0)) SetSelected(c, 0, Less(c.in(0), c.in(1)));
    if (c.need(1)) SetSelected(c, 1, Less(c.in(1), c.in(0)));
  };
  maximum.gradient_ops = gradient_ops;
  AddOp(r, std::move(maximum));

  ir::OpRecord minimum = BinaryOp("minimum", ir::kNumeric,
                                  "y = the smaller of a and b, NaN if either is; a tie gives each "
                                  "operand half of the gradient",
                                  "NumPy: minimum; gradient as PyTorch", exact);
  minimum.gradient = [](GradContext& c) {
    if (c.need(0)) SetSelected(c, 0, Less(c.in(1), c.in(0)));
    if (c.need(1)) SetSelected(c, 1, Less(c.in(0), c.in(1)));
  };
  minimum.gradient_ops = gradient_ops;
  AddOp(r, std::move(minimum));
}

void AddPow(ir::OpRegistry& r) {
  ir::OpRecord pow = BinaryOp("pow", ir::kFloats, "y = a^b", "C standard: pow",
                              Deny("powers leave the range of 16 bit quickly"));
  pow.cost = FlopsPerOutput(20);
  // Where b = 0 the slope in a is 0; where a = 0 and b >= 0 the slope in b is 0: the formulas alone
  // would give 0 times inf.
  pow.gradient = [](GradContext& c) {
    const Expr a = c.in(0), b = c.in(1), dy = c.dy(0), zero = Number(dy, 0);
    if (c.need(0)) {
      SetOperand(c, 0, Where(Equal(b, zero), zero, dy * (b * Pow(a, b - 1.0))));
    }
    if (c.need(1)) {
      const Expr flat = And(Equal(a, zero), LessEqual(zero, b));
      SetOperand(c, 1, Where(flat, zero, dy * (c.out(0) * Log(a))));
    }
  };
  pow.gradient_ops = {"equal", "less_equal", "logical_and", "where",       "sub",
                      "pow",   "log",        "mul",         "sum_to_shape"};
  AddOp(r, std::move(pow));
}

}  // namespace

void Register_binary(ir::OpRegistry& r) {
  AddArithmetic(r);
  AddSelection(r);
  AddPow(r);
}

}  // namespace halftone::ops
