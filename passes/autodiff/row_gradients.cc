#include "halftone/passes/autodiff/row_gradients.h"

#include <algorithm>
#include <set>
#include <vector>

#include "halftone/graph/ops/support/nn.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ir::Expr;

bool IsSparse(const ir::Node& node) {
  return !node.op().rows_op.empty() && node.attrs().Has("sparse") && node.attrs().GetBool("sparse");
}

// Attributes of the rows: those of the gradient that both ops have.
ir::Attributes RowAttributes(const ir::Node& term) {
  ir::Attributes attrs;
  for (const auto& [name, value] : term.attrs().entries()) {
    if (name != "sparse") attrs.Set(name, value);
  }
  return attrs;
}

bool SameRows(const ir::Node& a, const ir::Node& b) {
  const ir::Attributes of_a = RowAttributes(a), of_b = RowAttributes(b);
  return a.op().rows_op == b.op().rows_op &&
         std::equal(of_a.entries().begin(), of_a.entries().end(), of_b.entries().begin(),
                    of_b.entries().end(), [](const auto& x, const auto& y) {
                      return x.first == y.first && ir::Equal(x.second, y.second);
                    });
}

Expr Reshaped(Expr x, std::vector<int64_t> dims) {
  return x.builder()->Op("reshape", {x}, {{"shape", std::move(dims)}});
}

// What a gradient is a sum of.
struct GradientTerms {
  std::vector<const ir::Node*> sparse;  // gradients with the attribute `sparse`
  bool has_others = false;              // other terms, products, or other attributes
};

GradientTerms TermsOf(ir::Value gradient) {
  GradientTerms terms;
  std::vector<ir::Value> open = {gradient};
  std::set<const ir::Node*> seen;
  while (!open.empty()) {
    const ir::Value v = open.back();
    const ir::Node& node = *v.node;
    open.pop_back();
    if (!seen.insert(&node).second) {
      terms.has_others = true;  // twice a term: sums of sums would have too many
    } else if (IsCast(node) && IsLossless(node.input_type(0).dtype, v.dtype())) {
      open.push_back(node.input(0));
    } else if (IsOp(node, "add") && node.input_type(0) == node.input_type(1)) {
      open.push_back(node.input(1));
      open.push_back(node.input(0));  // first
    } else if (IsSparse(node)) {
      terms.sparse.push_back(&node);
      terms.has_others |= !SameRows(*terms.sparse[0], node);
    } else {
      terms.has_others = true;
      if (IsOp(node, "mul")) open.push_back(node.input(0));  // scaled, and so dense: worth a note
    }
  }
  return terms;
}

// Requires: one term or more, all alike. Errors stay in `b`.
RowGradient RowsOf(ir::Builder& b, const std::vector<const ir::Node*>& terms) {
  ir::Attributes attrs = RowAttributes(*terms[0]);
  Expr dy = b.Wrap(terms[0]->input(0)), idx = b.Wrap(terms[0]->input(1));
  if (terms.size() > 1) {
    const DType wide = ops::WideDType(dy.dtype());
    std::vector<Expr> all_dy, all_idx;
    for (const ir::Node* term : terms) {
      dy = b.Cast(b.Wrap(term->input(0)), wide);
      idx = b.Cast(b.Wrap(term->input(1)), DType::kI64);
      const int64_t picks = idx.valid() ? idx.type().num_elements() : 0;
      all_dy.push_back(Reshaped(dy, {picks, term->output_type().shape[1]}));
      all_idx.push_back(Reshaped(idx, {picks}));
    }
    dy = b.Op("concat", all_dy, {{"axis", int64_t{0}}});
    idx = b.Op("concat", all_idx, {{"axis", int64_t{0}}});
  } else if (ops::WideDType(dy.dtype()) != dy.dtype()) {
    attrs.Set("out", std::string("f32"));
  }
  b.NameNext(terms[0]->op().rows_op);
  const std::vector<Expr> made = b.Make(terms[0]->op().rows_op, {dy, idx}, std::move(attrs));
  return made.size() == 2 ? RowGradient{made[0], made[1]} : RowGradient{};
}

}  // namespace

absl::StatusOr<std::optional<RowGradient>> FindRows(ir::Builder& b, ir::Value gradient,
                                                    const optim::UpdateRule& rule,
                                                    const GradientOwner& owner,
                                                    PassContext& context) {
  const GradientTerms terms = TermsOf(gradient);
  if (terms.sparse.empty() || terms.has_others) {
    if (rule.only_rows) {
      return InvalidArgument(owner.optimizer, ": the gradient of \"", owner.parameter,
                             "\" is dense; ", owner.rule_name,
                             " expects that of a table which is used by embeddings with sparse = "
                             "true alone");
    }
    if (!terms.sparse.empty()) {
      context.notes.push_back(Concat(owner.optimizer, ": the gradient of \"", owner.parameter,
                                     "\" is dense although an embedding of it is sparse: the table "
                                     "is used otherwise too, with another padding_idx, or under "
                                     "losses with different scalers"));
    }
    return std::nullopt;
  }
  if (rule.rows_op.empty()) {
    return InvalidArgument(owner.optimizer, ": \"", owner.parameter,
                           "\" is the table of an embedding with sparse = true, and ",
                           owner.rule_name,
                           " as it is set changes every row in each step; expected ",
                           optim::RowWiseRules(), ", or sparse = false");
  }
  const RowGradient rows = RowsOf(b, terms.sparse);
  HT_RETURN_IF_ERROR(b.status());
  ++context.stats["row_gradients"];
  return rows;
}

}  // namespace halftone::passes
