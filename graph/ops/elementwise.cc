// The records of the elementwise ops, made of the rows of support/elementwise.def: y = f(x), or
// y = f(a, b) with NumPy's broadcasting, element by element.

#include <cmath>
#include <cstring>
#include <limits>
#include <numbers>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ops/support/elementwise_numbers.h"
#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/magnified.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using ir::GradContext;
using ir::ValueRange;

// A transcendental function counts as this many operations, an activation made of one as a few
// more.
constexpr double kFunctionFlops = 10, kActivationFlops = 12;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Of selu: mean 0 and variance 1 are a fixed point of the activations.
constexpr double kSeluScale = 1.0507009873554805, kSeluAlpha = 1.6732632423543773;
constexpr double kSqrt2 = std::numbers::sqrt2, kInvSqrtPi = std::numbers::inv_sqrtpi;

constexpr ir::DTypeSet kSigned{DType::kF64,  DType::kF32, DType::kF16,
                               DType::kBF16, DType::kI64, DType::kI32};

// What the op <name>_grad reads beside dy.
enum class GradientBy { kNothing, kInput, kOutput };

// The rows. A gradient is the op <name>_grad, or a formula and the ops in it, or none.
struct UnaryRow {
  std::string doc{}, source{};
  ir::AmpTrait amp{};
  ValueRange (*range)(const ValueRange& x) = nullptr;
  double flops = 1;
  ir::DTypeSet dtypes = ir::kFloats;
  GradientBy gradient_by = GradientBy::kNothing;
  Expr (*dx)(Expr x, Expr y, Expr dy) = nullptr;
  std::vector<std::string> gradient_ops{};
  Expr (*decompose)(Expr x) = nullptr;
  std::string no_gradient{};
};
// The attributes that are the numbers of a formula.
using Numbers = ir::Attributes;
struct TunableRow {
  std::string doc{}, source{};
  ir::AmpTrait amp{};
  ValueRange (*range)(const ValueRange& x, const Numbers& n) = nullptr;
  double flops = 1;
  GradientBy gradient_by = GradientBy::kNothing;
  Expr (*decompose)(Expr x, const Numbers& n) = nullptr;
  absl::Status (*check)(const ir::InferContext& ctx) = nullptr;
};
struct ApproximableRow {
  std::string doc{}, source{};
  ir::AmpTrait amp{};
  double flops = 1;
  GradientBy gradient_by = GradientBy::kNothing;
  Expr (*by_erf)(Expr x) = nullptr;
  Expr (*by_tanh)(Expr x) = nullptr;
};
struct GradientRow {
  std::string doc{}, source{};
  ir::AmpTrait amp{};
  double flops = 1;
  GradientBy of = GradientBy::kInput;
  Expr (*decompose)(Expr at, Expr dy) = nullptr;
  Expr (*decompose_by)(Expr at, Expr dy, const Numbers& n) = nullptr;
};
struct ApproximableGradientRow {
  std::string doc{}, source{};
  ir::AmpTrait amp{};
  double flops = 1;
  Expr (*by_erf)(Expr x, Expr dy) = nullptr;
  Expr (*by_tanh)(Expr x, Expr dy) = nullptr;
};
struct BinaryRow {
  std::string doc{}, source{};
  ir::AmpTrait amp{};
  ValueRange (*range)(const ValueRange& a, const ValueRange& b) = nullptr;
  double flops = 1;
  ir::DTypeSet dtypes = ir::kFloats;
  void (*gradient)(GradContext& c) = nullptr;
  std::vector<std::string> gradient_ops{};
};
struct CompareRow {
  std::string formula{};
  Expr (*decompose)(Expr a, Expr b) = nullptr;
};
struct LogicalRow {
  std::string doc{};
};

// Decompositions as the record wants them: nothing, or of one operand, or of two.
using Decomposition = decltype(ir::OpRecord::decompose);

Decomposition As(Expr (*formula)(Expr x)) {
  if (formula == nullptr) return nullptr;
  return [formula](auto&, auto& in, auto&) { return std::vector<Expr>{formula(in[0])}; };
}
Decomposition As(Expr (*formula)(Expr a, Expr b)) {
  if (formula == nullptr) return nullptr;
  return [formula](auto&, auto& in, auto&) { return std::vector<Expr>{formula(in[0], in[1])}; };
}

// Ranges as the record wants them, from a row's formula of the operands.
using RangeFunction = decltype(ir::OpRecord::range);

RangeFunction As(ValueRange (*range)(const ValueRange& x)) {
  if (range == nullptr) return nullptr;
  return [range](const ir::Node&, const std::vector<ValueRange>& in) { return range(in[0]); };
}
RangeFunction As(ValueRange (*range)(const ValueRange& x, const Numbers& n)) {
  if (range == nullptr) return nullptr;
  return [range](const ir::Node& node, const std::vector<ValueRange>& in) {
    return range(in[0], node.attrs());
  };
}
RangeFunction As(ValueRange (*range)(const ValueRange& a, const ValueRange& b)) {
  if (range == nullptr) return nullptr;
  return
      [range](const ir::Node&, const std::vector<ValueRange>& in) { return range(in[0], in[1]); };
}

void SetGradientOp(ir::OpRecord& op, GradientBy by) {
  if (by == GradientBy::kNothing) return;
  const std::string grad_op = op.name + "_grad";
  op.gradient_ops = {grad_op};
  op.gradient = [grad_op, by](GradContext& c) {
    const Expr at = by == GradientBy::kInput ? c.in(0) : c.out(0);
    c.set_dx(0, c.b.Op(grad_op, {at, c.dy(0)}, c.attrs()));
  };
}

void AddUnary(ir::OpRegistry& r, const char* name, UnaryRow row) {
  ir::OpRecord op = ElementwiseOp(name, {"x"}, row.dtypes, std::move(row.doc),
                                  std::move(row.source), std::move(row.amp));
  op.infer = InferLikeFirst;
  op.range = As(row.range);
  op.cost = FlopsPerOutput(row.flops);
  op.decompose = As(row.decompose);
  op.no_gradient = std::move(row.no_gradient);
  SetGradientOp(op, row.gradient_by);
  if (row.dx != nullptr) {
    op.gradient = [dx = row.dx](GradContext& c) { c.set_dx(0, dx(c.in(0), c.out(0), c.dy(0))); };
    op.gradient_ops = std::move(row.gradient_ops);
  }
  AddOp(r, std::move(op));
}

// Types alike, and numbers that are some.
Types InferTunable(const ir::InferContext& ctx) {
  for (const auto& [name, value] : ctx.attrs.entries()) {
    const double* number = std::get_if<double>(&value);
    if (number != nullptr && std::isnan(*number)) {
      return OpError(ctx, name, " nan; expected a number");
    }
  }
  return InferSameTypes(ctx);
}

void AddTunable(ir::OpRegistry& r, const char* name, std::vector<ir::AttrSpec> numbers,
                TunableRow row) {
  ir::OpRecord op = ElementwiseOp(name, {"x"}, ir::kFloats, std::move(row.doc),
                                  std::move(row.source), std::move(row.amp));
  op.attrs = std::move(numbers);
  op.infer = [check = row.check](const ir::InferContext& ctx) -> Types {
    Types types = InferTunable(ctx);
    if (types.ok() && check != nullptr) HT_RETURN_IF_ERROR(check(ctx));
    return types;
  };
  op.range = As(row.range);
  op.cost = FlopsPerOutput(row.flops);
  op.decompose = [f = row.decompose](auto&, auto& in, auto& attrs) {
    return std::vector<Expr>{f(in[0], attrs)};
  };
  SetGradientOp(op, row.gradient_by);
  AddOp(r, std::move(op));
}

// Its attributes are those of the op whose gradient it is, which stands before it in the table.
void AddGradient(ir::OpRegistry& r, const std::string& name, GradientRow row) {
  const std::string at = row.of == GradientBy::kInput ? "x" : "y";
  ir::OpRecord op = ElementwiseOp(name, {at, "dy"}, ir::kFloats, std::move(row.doc),
                                  std::move(row.source), std::move(row.amp));
  op.attrs = r.Find(name.substr(0, name.size() - std::strlen("_grad")))->attrs;
  op.infer = InferTunable;
  op.cost = FlopsPerOutput(row.flops);
  op.decompose = As(row.decompose);
  if (row.decompose_by != nullptr) {
    op.decompose = [f = row.decompose_by](auto&, auto& in, auto& attrs) {
      return std::vector<Expr>{f(in[0], in[1], attrs)};
    };
  }
  AddOp(r, std::move(op));
}

// The attribute of ops that have a formula by erf and one by tanh.
ir::AttrSpec ApproximateAttr() {
  return Optional("approximate", std::string("none"), "\"none\": by erf; \"tanh\": the tanh form");
}
bool ByTanh(const ir::Attributes& attrs) { return attrs.GetString("approximate") == "tanh"; }

Types InferApproximable(const ir::InferContext& ctx) {
  const std::string& approximate = ctx.attrs.GetString("approximate");
  if (approximate != "none" && approximate != "tanh") {
    return OpError(ctx, "approximate \"", approximate, "\"; expected \"none\" or \"tanh\"");
  }
  return InferSameTypes(ctx);
}

void AddApproximable(ir::OpRegistry& r, const char* name, ApproximableRow row) {
  ir::OpRecord op = ElementwiseOp(name, {"x"}, ir::kFloats, std::move(row.doc),
                                  std::move(row.source), std::move(row.amp));
  op.attrs = {ApproximateAttr()};
  op.infer = InferApproximable;
  op.cost = FlopsPerOutput(row.flops);
  op.decompose = [row](auto&, auto& in, auto& attrs) {
    return std::vector<Expr>{ByTanh(attrs) ? row.by_tanh(in[0]) : row.by_erf(in[0])};
  };
  SetGradientOp(op, row.gradient_by);
  AddOp(r, std::move(op));
}

void AddApproximableGradient(ir::OpRegistry& r, const char* name, ApproximableGradientRow row) {
  ir::OpRecord op = ElementwiseOp(name, {"x", "dy"}, ir::kFloats, std::move(row.doc),
                                  std::move(row.source), std::move(row.amp));
  op.attrs = {ApproximateAttr()};
  op.infer = InferApproximable;
  op.cost = FlopsPerOutput(row.flops);
  op.decompose = [row](auto&, auto& in, auto& attrs) {
    return std::vector<Expr>{ByTanh(attrs) ? row.by_tanh(in[0], in[1]) : row.by_erf(in[0], in[1])};
  };
  AddOp(r, std::move(op));
}

void AddBinary(ir::OpRegistry& r, const char* name, BinaryRow row) {
  ir::OpRecord op =
      ElementwiseOp(name, {"a", "b"}, row.dtypes, row.doc + "; a and b broadcast as in NumPy",
                    std::move(row.source), std::move(row.amp));
  op.infer = [](const ir::InferContext& ctx) { return InferBroadcast(ctx); };
  op.range = As(row.range);
  op.cost = FlopsPerOutput(row.flops);
  op.gradient = row.gradient;
  op.gradient_ops = std::move(row.gradient_ops);
  AddOp(r, std::move(op));
}

void AddCompare(ir::OpRegistry& r, const char* name, CompareRow row) {
  ir::AmpTrait amp = Clear("compares in the dtype that arrives");
  amp.same_dtype_inputs = {0, 1};
  ir::OpRecord op =
      ElementwiseOp(name, {"a", "b"}, ir::kAnyDType,
                    Concat("y = ", row.formula, " as bool; a and b broadcast as in NumPy"),
                    "IEEE 754: comparison; NaN compares unequal and unordered", std::move(amp));
  op.infer = [](const ir::InferContext& ctx) { return InferBroadcast(ctx, DType::kBool); };
  op.no_gradient = kGivesWhole;
  op.decompose = As(row.decompose);
  AddOp(r, std::move(op));
}

void AddPredicate(ir::OpRegistry& r, const char* name, UnaryRow row) {
  ir::OpRecord op = ElementwiseOp(name, {"x"}, row.dtypes, std::move(row.doc),
                                  std::move(row.source), std::move(row.amp));
  op.infer = [](const ir::InferContext& ctx) { return InferBroadcast(ctx, DType::kBool); };
  op.no_gradient = kGivesWhole;
  op.decompose = As(row.decompose);
  AddOp(r, std::move(op));
}

void AddLogical(ir::OpRegistry& r, const char* name, std::vector<std::string> inputs,
                LogicalRow row) {
  ir::OpRecord op = ElementwiseOp(name, std::move(inputs), {DType::kBool}, std::move(row.doc),
                                  "NumPy: logical functions", Clear("bool"));
  op.no_gradient = kGivesWhole;
  op.infer = [](const ir::InferContext& ctx) { return InferBroadcast(ctx); };
  AddOp(r, std::move(op));
}

// What rows are written with.

absl::Status CheckOrder(const ir::InferContext& ctx, const char* low, const char* high) {
  const double l = ctx.attrs.GetFloat(low), h = ctx.attrs.GetFloat(high);
  if (l <= h) return absl::OkStatus();
  return OpError(ctx, low, " ", l, ", ", high, " ", h, "; expected ", low, " <= ", high);
}

// Of min(max(x, low), high); an end may be infinite.
ValueRange Clamped(const ValueRange& x, double low, double high) {
  if (std::isfinite(low) && std::isfinite(high)) {
    return x.is_closed()
               ? Smaller(Larger(x, ValueRange::Between(low, low)), ValueRange::Between(high, high))
               : ValueRange::Between(low, high);
  }
  return x;
}

// The adjoint of broadcasting operand i.
void SetOperand(GradContext& c, int i, Expr dx) { c.set_dx(i, SumTo(dx, c.in(i).shape())); }

// dx of operand i of a selection: dy where it was selected, half of it on a tie. `loses` holds
// where the other operand was selected.
void SetSelected(GradContext& c, int i, Expr loses) {
  const Expr dy = c.dy(0);
  const Expr won = Where(Equal(c.in(0), c.in(1)), dy * 0.5, dy);
  SetOperand(c, i, Where(loses, Number(dy, 0), won));
}

// x (1 + bounded) / 2.
Expr HalfGated(Expr x, Expr bounded) { return x * 0.5 * (bounded + 1.0); }

// The tanh form of gelu is x (1 + tanh u) / 2 with u = sqrt(2/pi) (x + 0.044715 x^3).
constexpr double kGeluScale = kSqrt2 * kInvSqrtPi;
constexpr double kGeluCubic = 0.044715;
Expr GeluInner(Expr x) { return (x * x * x * kGeluCubic + x) * kGeluScale; }

ir::AmpTrait RunningSum(ir::AmpTrait amp) {
  amp.running_sum = true;
  return amp;
}

ir::AmpTrait Refined(ir::AmpTrait amp,
                     std::optional<ir::AmpRefinement> (*refine)(const ir::Node&, DType low)) {
  amp.refine = refine;
  return amp;
}

std::optional<ir::AmpRefinement> DenySquareInF16(const ir::Node& node, DType low) {
  if (low != DType::kF16 || node.input(0) != node.input(1)) return std::nullopt;
  return ir::AmpRefinement{ir::AmpClass::kDeny, "a square: values above 256 overflow f16"};
}

}  // namespace

void Register_elementwise(ir::OpRegistry& r) {
#define HT_UNARY(op, Formula, ...) AddUnary(r, #op, UnaryRow{__VA_ARGS__});
#define HT_NUMBER_ATTR(name, value) Optional(#name, value, "in the formula"),
#define HT_TUNABLE(op, Formula, Module, Numbers, ...) \
  AddTunable(r, #op, {HT_EACH_NUMBER(HT_NUMBER_ATTR, Numbers)}, TunableRow{__VA_ARGS__});
#define HT_APPROXIMABLE(op, ByErf, ByTanh, ...) \
  AddApproximable(r, #op, ApproximableRow{__VA_ARGS__});
#define HT_GRADIENT(op, Formula, ...) AddGradient(r, #op, GradientRow{__VA_ARGS__});
#define HT_APPROXIMABLE_GRADIENT(op, ByErf, ByTanh, ...) \
  AddApproximableGradient(r, #op, ApproximableGradientRow{__VA_ARGS__});
#define HT_BINARY(op, Formula, ...) AddBinary(r, #op, BinaryRow{__VA_ARGS__});
#define HT_SCALAR_BINARY(op, Formula, ...) AddBinary(r, #op, BinaryRow{__VA_ARGS__});
#define HT_COMPARE(op, Formula, ...) AddCompare(r, #op, CompareRow{__VA_ARGS__});
#define HT_COMPARE_SWAPPED(op, Formula, ...) AddCompare(r, #op, CompareRow{__VA_ARGS__});
#define HT_PREDICATE(op, Formula, ...) AddPredicate(r, #op, UnaryRow{__VA_ARGS__});
#define HT_LOGICAL(op, Formula, ...) AddLogical(r, #op, {"a", "b"}, LogicalRow{__VA_ARGS__});
#define HT_LOGICAL_UNARY(op, Formula, ...) AddLogical(r, #op, {"a"}, LogicalRow{__VA_ARGS__});
#include "halftone/graph/ops/support/elementwise.def"
#undef HT_NUMBER_ATTR
}

}  // namespace halftone::ops
