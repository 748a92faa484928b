#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/passes/rewrite/simplify_rules.h"

namespace halftone::passes {
namespace {

ir::Value CastToSame(ir::Node& node) {
  return node.input_type(0) == node.output_type() ? node.input(0) : ir::Value();
}

// cast(cast(x)) rounds once where the inner cast loses nothing; where it rounds, it stays.
ir::Value CastOfLosslessCast(ir::Node& node) {
  const ir::Node& inner = *node.input(0).node;
  if (!IsOp(inner, "cast")) return {};
  if (!IsLossless(inner.input_type(0).dtype, inner.output_type().dtype)) return {};
  node.set_input(0, inner.input(0));
  return node.output();
}

}  // namespace

const std::vector<SimplifyRule>& CastRules() {
  static const auto* const rules = new std::vector<SimplifyRule>{
      // A cast to f32 of what is f32 so far keeps what reads it f32, whatever its operand becomes.
      {"cast", "cast_to_same", &CastToSame, /*after_precision=*/true},
      {"cast", "cast_of_lossless_cast", &CastOfLosslessCast},
  };
  return *rules;
}

}  // namespace halftone::passes
