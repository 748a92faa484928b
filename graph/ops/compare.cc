// equal not_equal less less_equal greater greater_equal, logical_and logical_or logical_not,
// isfinite: bool results, no gradient.

#include <limits>

#include "halftone/graph/ops/support/expr.h"
#include "halftone/graph/ops/support/infer.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

using ir::Expr;
using Decomposition =
    std::function<std::vector<Expr>(ir::Builder&, const std::vector<Expr>&, const ir::Attributes&)>;

constexpr ir::DTypeSet kBoolOnly{DType::kBool};

ir::OpRecord CompareOp(const char* name, const char* formula, Decomposition decompose = nullptr) {
  ir::AmpTrait amp = Clear("compares in the dtype that arrives");
  amp.same_dtype_inputs = {0, 1};
  ir::OpRecord op =
      ElementwiseOp(name, {"a", "b"}, ir::kAnyDType,
                    Concat("y = ", formula, " as bool; a and b broadcast as in NumPy"),
                    "IEEE 754: comparison; NaN compares unequal and unordered", std::move(amp));
  op.infer = [](const ir::InferContext& ctx) { return InferBroadcast(ctx, DType::kBool); };
  op.decompose = std::move(decompose);
  return op;
}

ir::OpRecord LogicalOp(const char* name, std::vector<std::string> inputs, const char* doc) {
  ir::OpRecord op = ElementwiseOp(name, std::move(inputs), kBoolOnly, doc,
                                  "NumPy: logical functions", Clear("bool"));
  op.infer = [](const ir::InferContext& ctx) { return InferBroadcast(ctx); };
  return op;
}

ir::OpRecord IsFiniteOp() {
  ir::OpRecord op = ElementwiseOp(
      "isfinite", {"x"}, ir::kFloats, "y = true where x is neither infinite nor NaN",
      "IEEE 754: isFinite",
      Clear("asks about the dtype that arrives; a cast first would change the answer"));
  op.infer = [](const ir::InferContext& ctx) { return InferBroadcast(ctx, DType::kBool); };
  op.decompose = [](ir::Builder&, const std::vector<Expr>& in, const ir::Attributes&) {
    return std::vector<Expr>{
        Less(Abs(in[0]), Number(in[0], std::numeric_limits<double>::infinity()))};
  };
  return op;
}

}  // namespace

void Register_compare(ir::OpRegistry& r) {
  AddOp(r, CompareOp("equal", "a == b"));
  AddOp(r, CompareOp("not_equal", "a != b", [](auto&, auto& in, auto&) {
          return std::vector<Expr>{Not(Equal(in[0], in[1]))};
        }));
  AddOp(r, CompareOp("less", "a < b"));
  AddOp(r, CompareOp("less_equal", "a <= b"));
  AddOp(r, CompareOp("greater", "a > b",
                     [](auto&, auto& in, auto&) { return std::vector<Expr>{Less(in[1], in[0])}; }));
  AddOp(r, CompareOp("greater_equal", "a >= b", [](auto&, auto& in, auto&) {
          return std::vector<Expr>{LessEqual(in[1], in[0])};
        }));
  AddOp(r, LogicalOp("logical_and", {"a", "b"}, "y = a and b; a and b broadcast as in NumPy"));
  AddOp(r, LogicalOp("logical_or", {"a", "b"}, "y = a or b; a and b broadcast as in NumPy"));
  AddOp(r, LogicalOp("logical_not", {"a"}, "y = not a"));
  AddOp(r, IsFiniteOp());
}

}  // namespace halftone::ops
