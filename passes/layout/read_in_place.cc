#include "halftone/passes/layout/read_in_place.h"

#include <map>
#include <utility>
#include <vector>

#include "halftone/passes/layout/strided_views.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

constexpr const char* kAttention = "scaled_dot_product_attention";
constexpr const char* kAttentionGrad = "scaled_dot_product_attention_grad";
constexpr int kY = 3, kDy = 5;  // ports of the gradient

// Whether it swaps the axes of heads and positions, and nothing else.
bool SwapsHeads(const ir::Node& node) {
  if (!IsOp(node, "transpose")) return false;
  std::vector<int64_t> perm = node.attrs().GetInts("perm");
  if (perm.size() < 3) return false;
  std::swap(perm[perm.size() - 3], perm[perm.size() - 2]);
  for (size_t i = 0; i < perm.size(); ++i) {
    if (perm[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

class ReadInPlace : public Pass {
 public:
  const char* name() const override { return "read-in-place"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const ir::UseMap uses(graph);
    Replacements replacements;
    std::vector<ir::Node*> gone;
    int64_t views = 0, heads_last = 0;
    for (ir::Node* node : Snapshot(graph)) {
      if (!IsOp(*node, kAttention) && !IsOp(*node, kAttentionGrad)) continue;
      views += ViewOperands(*node);
      if (!IsOp(*node, kAttention)) continue;
      HT_ASSIGN_OR_RETURN(const int64_t swapped, PutHeadsLast(*node, uses, replacements, gone));
      heads_last += swapped;
    }
    replacements.Finish(graph);
    graph.Remove(gone);
    context.stats["views"] += views;
    context.stats["heads_last"] += heads_last;
    return views + heads_last > 0;
  }

 private:
  static int64_t ViewOperands(ir::Node& node) {
    static constexpr const char* kViews[] = {"query_view", "key_view", "value_view"};
    std::vector<ViewedValue> viewed;
    std::map<std::pair<int64_t, int>, int64_t> read;  // elements of each base
    for (int port = 0; port < 3; ++port) {
      if (!node.attrs().GetInts(kViews[port]).empty()) return 0;
      viewed.push_back(ViewedFrom(node.input(port)));
      const ViewedValue& v = viewed.back();
      read[{v.base.node->id(), v.base.index}] += v.view.shape.num_elements();
    }
    const std::vector<ir::Value> before = node.inputs();
    int64_t views = 0;
    for (int port = 0; port < 3; ++port) {
      const auto& [base, view] = viewed[static_cast<size_t>(port)];
      if (base == node.input(port) || view.strides.back() != 1) continue;
      if (read[{base.node->id(), base.index}] < base.type().num_elements()) continue;
      node.set_input(port, base);
      node.mutable_attrs().Set(kViews[port], ops::ToAttribute(view));
      ++views;
    }
    // What inference refuses, batches that are no single axis in memory, stays a copy.
    if (views == 0 || Reinfer(node).ok()) return views;
    for (int port = 0; port < 3; ++port) {
      node.set_input(port, before[static_cast<size_t>(port)]);
      node.mutable_attrs().Set(kViews[port], std::vector<int64_t>());
    }
    return 0;
  }

  // Whether all readers of `v` but gradients of its node swap heads and positions; one at least.
  static bool IsWantedSwapped(ir::Value v, const ir::UseMap& uses, bool may_be_unread) {
    if (uses.is_output(v)) return false;
    bool any = may_be_unread;
    for (const ir::UseMap::Use& use : uses.uses(v)) {
      if (IsOp(*use.node, kAttentionGrad) && use.port == kY) continue;
      if (!SwapsHeads(*use.node)) return false;
      any = true;
    }
    return any;
  }

  // How many ops do: `node` and its gradients, or none. The transposes that they replace are `gone`.
  static absl::StatusOr<int64_t> PutHeadsLast(ir::Node& node, const ir::UseMap& uses,
                                              Replacements& replacements,
                                              std::vector<ir::Node*>& gone) {
    if (node.attrs().GetBool("heads_last") || !IsWantedSwapped(node.output(), uses, false)) {
      return 0;
    }
    std::vector<ir::Node*> all = {&node};
    for (const ir::UseMap::Use& use : uses.uses(node.output())) {
      if (!IsOp(*use.node, kAttentionGrad)) continue;
      if (!SwapsHeads(*use.node->input(kDy).node)) return 0;
      for (int i = 0; i < 3; ++i) {
        if (!IsWantedSwapped(use.node->output(i), uses, true)) return 0;
      }
      all.push_back(use.node);
    }
    for (ir::Node* op : all) {
      op->mutable_attrs().Set("heads_last", true);
      if (op != &node) op->set_input(kDy, op->input(kDy).node->input(0));
      HT_RETURN_IF_ERROR(Reinfer(*op));
      const int results = op == &node ? 1 : 3;
      for (int i = 0; i < results; ++i) {
        for (const ir::UseMap::Use& use : uses.uses(op->output(i))) {
          if (!SwapsHeads(*use.node)) continue;
          replacements.Replace(use.node->output(), op->output(i));
          gone.push_back(use.node);
        }
      }
    }
    return static_cast<int64_t>(all.size());
  }
};

}  // namespace

std::unique_ptr<Pass> MakeReadInPlace() { return std::make_unique<ReadInPlace>(); }

}  // namespace halftone::passes
