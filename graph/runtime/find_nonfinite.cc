#include "halftone/graph/runtime/find_nonfinite.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::runtime {
namespace {

using Key = std::pair<int64_t, int>;
using Kind = NonFiniteNode::Kind;

Key KeyOf(const ir::Value& value) { return {value.node->id(), value.index}; }

// Where what is not finite in a value began.
struct Origin {
  ir::Value at;
  // Infinities that came from outside and are meant, until a NaN is made of them.
  bool is_given = false;
};

class Search {
 public:
  Search(const ir::Graph& graph, const SeenRanges& ranges) : graph_(graph), ranges_(ranges) {
    int position = 0;
    for (const auto& node : graph.nodes()) {
      positions_[node->id()] = position++;
      for (int i = 0; i < node->num_outputs(); ++i) Trace(node->output(i));
    }
  }

  // The origin that counts: the first that was made in the step, else the first that was given.
  const Origin* First() const {
    const Origin* first = nullptr;
    const auto look_at = [&](const ir::Value& root) {
      const auto found = origins_.find(KeyOf(root));
      if (found == origins_.end()) return;
      if (first == nullptr || Rank(found->second) < Rank(*first)) first = &found->second;
    };
    for (const ir::Output& output : graph_.outputs()) look_at(output.value);
    for (const auto& node : graph_.nodes()) {
      const bool looks = passes::IsOp(*node, "commit") || passes::IsOp(*node, "grad_stats") ||
                         passes::IsOp(*node, "grad_squares");
      if (!looks) continue;
      for (const ir::Value& input : node->inputs()) look_at(input);
    }
    return first;
  }

 private:
  std::pair<bool, int> Rank(const Origin& origin) const {
    return {origin.is_given, positions_.at(origin.at.node->id())};
  }

  const amp::Range* RangeOf(const ir::Value& value) const {
    const auto found = ranges_.find(KeyOf(value));
    return found == ranges_.end() ? nullptr : &found->second;
  }

  void Trace(const ir::Value& value) {
    const amp::Range* range = RangeOf(value);
    if (range == nullptr || range->is_finite()) return;
    const bool has_nan = range->nans > 0;
    const Origin here{value, passes::IsSource(*value.node) && !has_nan};
    const Origin* from = nullptr;
    bool nan_comes_in = false;
    for (const ir::Value& input : value.node->inputs()) {
      const auto found = origins_.find(KeyOf(input));
      if (found == origins_.end()) continue;
      nan_comes_in |= RangeOf(input)->nans > 0;
      if (from == nullptr || Rank(found->second) < Rank(*from)) from = &found->second;
    }
    const bool makes_nan = has_nan && !nan_comes_in;
    origins_[KeyOf(value)] = from == nullptr || (from->is_given && makes_nan) ? here : *from;
  }

  const ir::Graph& graph_;
  const SeenRanges& ranges_;
  std::map<int64_t, int> positions_;  // by node id
  std::map<Key, Origin> origins_;     // of values that are not finite
};

std::string NameOf(const ir::Value& value) {
  const bool is_given = passes::IsOp(*value.node, "variable") || passes::IsOp(*value.node, "input");
  return is_given ? value.node->attrs().GetString("name") : value.ToString();
}

// What is known of the node that `node` was made for: gradients, casts and repeated nodes have the
// precision of others.
void Explain(const ir::Graph& graph, const ir::Node& node, NonFiniteNode& found) {
  const ir::Node* about = &node;
  std::string prefix;
  if (passes::IsAmpCast(node)) {
    for (const auto& reader : graph.nodes()) {
      const auto reads = [&node](const ir::Value& v) { return v.node == &node; };
      if (!reader->amp.decided ||
          !std::any_of(reader->inputs().begin(), reader->inputs().end(), reads)) {
        continue;
      }
      found.why = Concat("cast for %", reader->name(), ", ", reader->amp.reason);
      return;
    }
  }
  while (about != nullptr && !about->provenance.pass.empty()) {
    if (about->provenance.pass == "autodiff" && found.gradient_of.empty()) {
      found.gradient_of = about->provenance.from;
    }
    if (about->amp.decided) break;
    const ir::Node* const from = graph.FindNode(about->provenance.from);
    if (from == about) break;
    about = from;
  }
  if (about != nullptr && about->amp.decided) found.why = about->amp.reason;
}

}  // namespace

std::optional<NonFiniteNode> FindNonFinite(const ir::Graph& lowered, const SeenRanges& ranges) {
  const Search search(lowered, ranges);
  const Origin* const origin = search.First();
  if (origin == nullptr) return std::nullopt;
  const ir::Value& value = origin->at;
  const ir::Node& node = *value.node;
  NonFiniteNode found;
  found.kind = passes::IsOp(node, "input")      ? Kind::kInput
               : passes::IsOp(node, "variable") ? Kind::kVariable
               : passes::IsOp(node, "constant") ? Kind::kConstant
                                                : Kind::kComputed;
  found.node = passes::IsSource(node) && found.kind != Kind::kConstant
                   ? node.attrs().GetString("name")
                   : node.name();
  found.op = node.op().name;
  found.module = node.scope();
  found.location = node.location.ToString();
  found.output = value.index;
  found.type = value.type().ToString();
  found.dtype = value.dtype();
  found.range = ranges.at(KeyOf(value));
  for (const ir::Value& input : node.inputs()) {
    const auto range = ranges.find(KeyOf(input));
    found.operands.push_back({NameOf(input), input.type().ToString(),
                              range == ranges.end() ? amp::Range() : range->second});
  }
  Explain(lowered, node, found);
  return found;
}

}  // namespace halftone::runtime
