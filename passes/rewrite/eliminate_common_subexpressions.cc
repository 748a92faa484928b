#include "halftone/passes/rewrite/eliminate_common_subexpressions.h"

#include <algorithm>
#include <functional>
#include <string_view>
#include <unordered_map>

#include "halftone/graph/ir/text_format.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

void Mix(uint64_t& hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  hash ^= hash >> 32;
}

template <typename T>
uint64_t HashOf(const T& value) {
  return std::hash<T>()(value);
}
uint64_t HashOf(const DType& value) { return static_cast<uint64_t>(value); }
uint64_t HashOf(const Tensor& value) {
  if (ir::IsSplat(value)) return HashOf(value.at(0));
  return std::hash<std::string_view>()({static_cast<const char*>(value.raw()), value.num_bytes()});
}
template <typename T>
uint64_t HashOf(const std::vector<T>& values) {
  uint64_t hash = values.size();
  for (const T& value : values) Mix(hash, HashOf(value));
  return hash;
}

uint64_t HashNode(const ir::Node& node, bool with_scope) {
  uint64_t hash = HashOf(node.op().name);
  if (with_scope) Mix(hash, HashOf(node.scope()));
  for (const auto& [name, value] : node.attrs().entries()) {
    Mix(hash, HashOf(name));
    Mix(hash, std::visit([](const auto& typed) { return HashOf(typed); }, value));
  }
  for (ir::Value v : node.inputs()) {
    Mix(hash, static_cast<uint64_t>(v.node->id()));
    Mix(hash, static_cast<uint64_t>(v.index));
  }
  return hash;
}

class EliminateCommonSubexpressions : public Pass {
 public:
  const char* name() const override { return "eliminate-common-subexpressions"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const std::vector<ir::Node*> nodes = Snapshot(graph);
    const bool amp_waits = std::any_of(nodes.begin(), nodes.end(),
                                       [](const ir::Node* node) { return IsOp(*node, "amp"); });
    std::unordered_multimap<uint64_t, ir::Node*> seen;
    std::vector<ir::Node*> merged;
    Replacements replacements;
    for (ir::Node* node : nodes) {
      replacements.Update(*node);
      const ir::OpRecord& op = node->op();
      if (op.is_random || op.communicates || op.has_side_effect) continue;
      if (op.is_marker || IsRecomputed(*node)) continue;
      if (IsSource(*node) && !IsOp(*node, "constant")) continue;
      const bool is_constant = ConstantValue(node->output()) != nullptr;
      const uint64_t hash = HashNode(*node, amp_waits && !is_constant);
      const auto [first, last] = seen.equal_range(hash);
      const auto found = std::find_if(
          first, last, [&](const auto& entry) { return Equal(*entry.second, *node, amp_waits); });
      if (found == last) {
        seen.emplace(hash, node);
        continue;
      }
      ir::Node* kept = found->second;
      for (int i = 0; i < node->num_outputs(); ++i) {
        replacements.Replace(node->output(i), kept->output(i));
      }
      if (node->provenance.pass.empty()) kept->provenance = {};
      merged.push_back(node);
    }
    replacements.Finish(graph);
    graph.Remove(merged);
    context.stats["merged"] += static_cast<int64_t>(merged.size());
    return !merged.empty();
  }

 private:
  static bool Equal(const ir::Node& a, const ir::Node& b, bool amp_waits) {
    if (&a.op() != &b.op() || a.inputs() != b.inputs() || !(a.attrs() == b.attrs())) return false;
    const bool is_constant = ConstantValue(a.output()) != nullptr;  // keeps its dtype anyway
    if (!is_constant && a.amp_request != b.amp_request) return false;
    if (!is_constant && amp_waits && a.scope() != b.scope()) return false;
    for (int i = 0; i < a.num_outputs(); ++i) {
      if (a.output_type(i) != b.output_type(i)) return false;  // layouts may differ
    }
    return true;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeEliminateCommonSubexpressions() {
  return std::make_unique<EliminateCommonSubexpressions>();
}

}  // namespace halftone::passes
