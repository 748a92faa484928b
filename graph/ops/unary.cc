// exp log sqrt cos sin erf reciprocal neg abs floor: y = f(x), element by element.

#include <cmath>
#include <numbers>

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::GradContext;

// A transcendental function counts as this many operations.
constexpr double kFunctionFlops = 10;

constexpr ir::DTypeSet kSigned{DType::kF64,  DType::kF32, DType::kF16,
                               DType::kBF16, DType::kI64, DType::kI32};

ir::OpRecord UnaryOp(std::string name, ir::DTypeSet dtypes, std::string doc, std::string source,
                     ir::AmpTrait amp, double flops) {
  ir::OpRecord op = ElementwiseOp(std::move(name), {"x"}, dtypes, std::move(doc), std::move(source),
                                  std::move(amp));
  op.infer = InferLikeFirst;
  op.cost = FlopsPerOutput(flops);
  return op;
}

void AddFunctions(ir::OpRegistry& r) {
  ir::OpRecord exp =
      UnaryOp("exp", ir::kFloats, "y = e^x", "C standard: exp",
              Deny("e^11.1 exceeds f16's 65504, and a rounded argument costs as many "
                   "digits as it is large"),
              kFunctionFlops);
  exp.gradient = [](GradContext& c) { c.set_dx(0, c.dy(0) * c.out(0)); };
  exp.gradient_ops = {"mul"};
  AddOp(r, std::move(exp));

  ir::OpRecord log = UnaryOp(
      "log", ir::kFloats, "y = ln x; ln 0 = -inf, NaN below 0", "C standard: log",
      DenyF16("an f16 argument may have underflowed to 0, whose log is -inf"), kFunctionFlops);
  log.gradient = [](GradContext& c) { c.set_dx(0, c.dy(0) / c.in(0)); };
  log.gradient_ops = {"div"};
  AddOp(r, std::move(log));

  ir::OpRecord sqrt = UnaryOp("sqrt", ir::kFloats, "y = x^(1/2), correctly rounded; NaN below 0",
                              "IEEE 754: squareRoot", InferAcc("shrinks the range"), 4);
  sqrt.gradient = [](GradContext& c) { c.set_dx(0, c.dy(0) / (c.out(0) * 2.0)); };
  sqrt.gradient_ops = {"mul", "div"};
  AddOp(r, std::move(sqrt));

  ir::OpRecord cos =
      UnaryOp("cos", ir::kFloats, "y = cos x, x in radians", "C standard: cos",
              Deny("a 16-bit argument above 2 pi has lost its phase"), kFunctionFlops);
  // Not by cos(x + pi/2): the sum would round the phase of a large x away.
  cos.gradient = [](GradContext& c) { c.set_dx(0, -(c.dy(0) * Sin(c.in(0)))); };
  cos.gradient_ops = {"sin", "mul", "neg"};
  AddOp(r, std::move(cos));

  ir::OpRecord sin =
      UnaryOp("sin", ir::kFloats, "y = sin x, x in radians", "C standard: sin",
              Deny("a 16-bit argument above 2 pi has lost its phase"), kFunctionFlops);
  sin.gradient = [](GradContext& c) { c.set_dx(0, c.dy(0) * Cos(c.in(0))); };
  sin.gradient_ops = {"cos", "mul"};
  AddOp(r, std::move(sin));

  ir::OpRecord erf = UnaryOp("erf", ir::kFloats, "y = 2/sqrt(pi) integral of e^(-t^2), t = 0..x",
                             "C standard: erf", InferAcc("bounded"), kFunctionFlops);
  erf.gradient = [](GradContext& c) {
    const Expr density = Exp(-(c.in(0) * c.in(0))) * (2 * std::numbers::inv_sqrtpi);
    c.set_dx(0, c.dy(0) * density);
  };
  erf.gradient_ops = {"mul", "neg", "exp"};
  AddOp(r, std::move(erf));

  ir::OpRecord reciprocal = UnaryOp("reciprocal", ir::kFloats, "y = 1 / x", "IEEE 754: division",
                                    DenyF16("1/x exceeds f16's 65504 for x below 1.5e-5"), 4);
  reciprocal.gradient = [](GradContext& c) { c.set_dx(0, -(c.dy(0) * (c.out(0) * c.out(0)))); };
  reciprocal.gradient_ops = {"mul", "neg"};
  reciprocal.decompose = [](ir::Builder&, const std::vector<Expr>& in, const ir::Attributes&) {
    return std::vector<Expr>{1.0 / in[0]};
  };
  AddOp(r, std::move(reciprocal));
}

void AddExact(ir::OpRegistry& r) {
  const ir::AmpTrait exact = Clear("exact in every dtype");

  ir::OpRecord neg = UnaryOp("neg", kSigned, "y = -x; integers wrap", "IEEE 754: negate", exact, 1);
  neg.gradient = [](GradContext& c) { c.set_dx(0, -c.dy(0)); };
  neg.gradient_ops = {"neg"};
  AddOp(r, std::move(neg));

  ir::OpRecord abs = UnaryOp("abs", kSigned, "y = |x|; gradient 0 at 0", "IEEE 754: abs", exact, 1);
  // At 0 the last branch gives 0, and NaN stays NaN.
  abs.gradient = [](GradContext& c) {
    const Expr x = c.in(0), dy = c.dy(0), zero = Number(x, 0);
    c.set_dx(0, Where(Less(zero, x), dy, Where(Less(x, zero), -dy, x * dy)));
  };
  abs.gradient_ops = {"less", "where", "neg", "mul"};
  AddOp(r, std::move(abs));

  // Flat almost everywhere: without a gradient, so none flows.
  AddOp(r, UnaryOp("floor", ir::kFloats, "y = largest whole number <= x; no gradient flows",
                   "IEEE 754: roundToIntegralTowardNegative", exact, 1));
}

}  // namespace

void Register_unary(ir::OpRegistry& r) {
  AddFunctions(r);
  AddExact(r);
}

}  // namespace halftone::ops
