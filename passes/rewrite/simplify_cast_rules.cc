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

// embedding(cast(table)) casts the rows that are read, not the table.
ir::Value RowsOfCastTable(ir::Node& node) {
  const ir::Node& inner = *node.input(0).node;
  if (!IsOp(inner, "cast")) return {};
  if (!IsLossless(inner.input_type(0).dtype, inner.output_type().dtype)) return {};
  ir::Builder b = BuilderLike(node, "simplify");
  b.NameNext(node.name());
  const ir::Expr rows = b.Op(node.op().name, {b.Wrap(inner.input(0)), b.Wrap(node.input(1))},
                             ir::Attributes(node.attrs()));
  return b.Cast(rows, node.output_type().dtype).value();
}

}  // namespace

const std::vector<SimplifyRule>& CastRules() {
  static const auto* const rules = new std::vector<SimplifyRule>{
      // A cast to f32 of what is f32 so far keeps what reads it f32, whatever its operand becomes.
      {"cast", "cast_to_same", &CastToSame, /*after_precision=*/true},
      {"cast", "cast_of_lossless_cast", &CastOfLosslessCast},
      {"embedding", "rows_of_cast_table", &RowsOfCastTable},
  };
  return *rules;
}

}  // namespace halftone::passes
