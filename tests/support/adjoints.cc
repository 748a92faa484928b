#include "halftone/tests/support/adjoints.h"

#include <map>

namespace halftone::testing {
namespace {

using ir::Builder;
using ir::Expr;
using ir::Node;
using ir::Value;

class Adjoints {
 public:
  void Add(Value v, Expr dx) {
    if (!dx.valid()) return;
    Expr& sum = sums_[{v.node, v.index}];
    sum = sum.valid() ? sum + dx : dx;
  }
  Expr Of(Value v) const {
    const auto found = sums_.find({v.node, v.index});
    return found == sums_.end() ? Expr() : found->second;
  }
  std::vector<Expr> OfOutputs(const Node& node) const {
    std::vector<Expr> dys;
    for (int i = 0; i < node.num_outputs(); ++i) dys.push_back(Of(node.output(i)));
    return dys;
  }

 private:
  std::map<std::pair<const Node*, int>, Expr> sums_;
};

bool AnyValid(const std::vector<Expr>& exprs) {
  for (const Expr& e : exprs) {
    if (e.valid()) return true;
  }
  return false;
}

std::vector<Expr> ByGradient(Builder& b, const Node& node, std::vector<Expr> dys) {
  std::vector<bool> needs;
  for (int i = 0; i < node.num_inputs(); ++i) needs.push_back(IsFloat(node.input_type(i).dtype));
  ir::GradContext context{b, node, std::move(dys), needs, std::vector<Expr>(node.num_inputs())};
  node.op().gradient(context);
  return context.dxs;
}

std::vector<Expr> ByDecomposition(Builder& b, const Node& node, const std::vector<Expr>& dys) {
  std::vector<Expr> inputs;
  for (const Value& v : node.inputs()) inputs.push_back(b.Wrap(v));
  const auto& nodes = b.graph().nodes();
  const size_t first = nodes.size();
  const std::vector<Expr> outputs = node.op().decompose(b, inputs, node.attrs());
  const size_t last = nodes.size();
  Adjoints adjoints;
  for (size_t i = 0; i < outputs.size(); ++i) adjoints.Add(outputs[i].value(), dys[i]);
  for (size_t n = last; n-- > first;) {
    const Node& part = *nodes[n];
    const std::vector<Expr> part_dys = adjoints.OfOutputs(part);
    if (!AnyValid(part_dys)) continue;
    const std::vector<Expr> dxs = AdjointsOf(b, part, part_dys);
    for (int i = 0; i < part.num_inputs(); ++i) adjoints.Add(part.input(i), dxs[i]);
  }
  std::vector<Expr> dxs;
  for (const Value& v : node.inputs()) dxs.push_back(adjoints.Of(v));
  return dxs;
}

}  // namespace

std::vector<Expr> AdjointsOf(Builder& b, const Node& node, std::vector<Expr> dys) {
  if (node.op().gradient) return ByGradient(b, node, std::move(dys));
  if (node.op().decompose) return ByDecomposition(b, node, dys);
  return std::vector<Expr>(node.num_inputs());
}

}  // namespace halftone::testing
