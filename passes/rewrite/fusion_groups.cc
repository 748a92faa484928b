#include "halftone/passes/rewrite/fusion_groups.h"

#include <algorithm>
#include <optional>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "halftone/core/strings.h"
#include "halftone/graph/ops/support/fused_body.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

class FusionSearch {
 public:
  FusionSearch(const ir::Graph& graph, const ir::Target& target)
      : graph_(graph), target_(target), uses_(graph) {
    for (const auto& node : graph.nodes()) {
      const auto position = static_cast<int>(positions_.size());
      positions_[node.get()] = position;
    }
  }

  Fusion Run() {
    const auto& nodes = graph_.nodes();
    for (auto node = nodes.rbegin(); node != nodes.rend(); ++node) {
      if (!taken_.contains(node->get()) && IsFusable(**node)) Grow(**node);
    }
    std::reverse(fusion_.groups.begin(), fusion_.groups.end());
    std::reverse(fusion_.apart.begin(), fusion_.apart.end());
    return std::move(fusion_);
  }

 private:
  struct Group {
    std::unordered_set<const ir::Node*> members;
    std::vector<ir::Value> inputs;
    std::optional<int64_t> period;  // of inputs that repeat
  };

  static bool IsElementwise(const ir::Node& node) {
    return ops::WhyNotFusable(node.op()).empty() && node.num_outputs() == 1 &&
           node.num_inputs() > 0;
  }
  // Whether it may be the result of a group.
  bool IsFusable(const ir::Node& node) const {
    return IsElementwise(node) && node.output_type().num_elements() >= kLeastFusedElements &&
           node.num_inputs() <= ops::kMaxFusedInputs && HasKernel(node) && !IsKeptCopy(node) &&
           WhyNoInputs(node, {}, nullptr).empty();
  }
  // Its own, and one of bodies with what it reads and gives.
  bool HasKernel(const ir::Node& node) const {
    const std::vector<ir::Value>& inputs = node.inputs();
    return target_.FusesOp(node.op().name) &&
           target_.HasKernel(node.op().name, node.input_type(0).dtype) &&
           target_.HasKernel("fused", node.output_type().dtype) &&
           std::all_of(inputs.begin(), inputs.end(), [this](const ir::Value& input) {
             return target_.HasKernel("fused", input.type().dtype);
           });
  }
  static bool IsKeptCopy(const ir::Node& node) {
    return IsCast(node) && IsOp(*node.input(0).node, "variable");
  }

  void Grow(const ir::Node& result) {
    Group group;
    group.members.insert(&result);
    TakeInputs(result, group);
    // By position, the last first: what is computed next to its reader joins before what is far.
    for (bool grown = true; grown;) {
      grown = false;
      std::vector<const ir::Node*> candidates;
      for (const ir::Value& input : group.inputs) candidates.push_back(input.node);
      std::sort(candidates.begin(), candidates.end(), [this](const auto* a, const auto* b) {
        return positions_.at(a) > positions_.at(b);
      });
      for (const ir::Node* candidate : candidates) {
        if (!IsElementwise(*candidate) || !WhyApart(*candidate, result, group).empty()) continue;
        group.members.insert(candidate);
        TakeInputs(*candidate, group);
        grown = true;
        break;
      }
    }
    for (const ir::Value& input : group.inputs) {
      if (!IsElementwise(*input.node)) continue;
      fusion_.apart.push_back({input.node, &result, WhyApart(*input.node, result, group)});
    }
    taken_.insert(group.members.begin(), group.members.end());
    if (group.members.size() < 2) return;
    FusionGroup found;
    found.nodes.assign(group.members.begin(), group.members.end());
    std::sort(found.nodes.begin(), found.nodes.end(),
              [this](const auto* a, const auto* b) { return positions_.at(a) < positions_.at(b); });
    fusion_.groups.push_back(std::move(found));
  }

  // Its operands in place of its value.
  static void TakeInputs(const ir::Node& node, Group& group) {
    std::erase(group.inputs, node.output());
    for (const ir::Value& input : node.inputs()) {
      if (std::find(group.inputs.begin(), group.inputs.end(), input) == group.inputs.end()) {
        group.inputs.push_back(input);
      }
    }
  }

  // Why `node`, which a member reads, does not join; empty: it does.
  std::string WhyApart(const ir::Node& node, const ir::Node& result, const Group& group) const {
    if (uses_.is_output(node.output())) return "is a result of the graph";
    const size_t readers = uses_.uses(node.output()).size();
    if (readers != 1) return Concat("is read ", readers, " times");
    if (node.output_type().shape != result.output_type().shape) return "has another shape";
    if (node.output_type().layout != result.output_type().layout) return "has another layout";
    if (!HasKernel(node)) return "has no kernel of the device in its dtype";
    if (IsKeptCopy(node)) return "is a copy of a variable, which is kept from step to step";
    if (node.recompute != result.recompute) return "is made anew apart from its reader";
    if (group.members.size() == ops::kMaxFusedSteps) return "would be one op too many";
    const std::string why = WhyNoInputs(result, group.inputs, &node);
    return why.empty() ? WhyHeld(node, result, group) : why;
  }

  // Of a group with these inputs and this result, once `joining` is in it.
  static std::string WhyNoInputs(const ir::Node& result, std::vector<ir::Value> inputs,
                                 const ir::Node* joining) {
    Group group;
    group.inputs = std::move(inputs);
    TakeInputs(joining == nullptr ? result : *joining, group);
    if (group.inputs.size() > ops::kMaxFusedInputs) return "would be one input too many";
    std::optional<int64_t> period;
    for (const ir::Value& input : group.inputs) {
      const auto access = ops::AccessOf(input.type(), result.output_type());
      if (!access.has_value()) return Concat("reads ", input.ToString(), " in another order");
      if (access->kind != ops::FusedAccess::Kind::kRow) continue;
      if (period.has_value() && *period != access->period) {
        return Concat("reads ", input.ToString(), ", whose rows have another length");
      }
      period = access->period;
    }
    return "";
  }

  // Whether computing `node` where the group's result is holds more bytes meanwhile.
  std::string WhyHeld(const ir::Node& node, const ir::Node& result, const Group& group) const {
    const int from = positions_.at(&node), to = positions_.at(&result);
    const auto& nodes = graph_.nodes();
    const bool alone =
        std::all_of(nodes.begin() + from + 1, nodes.begin() + to, [&](const auto& between) {
          return IsSource(*between) || group.members.contains(between.get());
        });
    if (alone) return "";
    int64_t held = 0;
    for (const ir::Value& input :
         std::set<ir::Value, ByNode>(node.inputs().begin(), node.inputs().end())) {
      if (!IsSource(*input.node) && LastUse(input) <= from) held += input.type().num_bytes();
    }
    const int64_t own = node.output_type().num_bytes();
    return held <= own ? "" : Concat("would hold ", held, " bytes until then instead of ", own);
  }
  int LastUse(ir::Value v) const {
    if (uses_.is_output(v)) return static_cast<int>(positions_.size());
    int last = 0;
    for (const auto& use : uses_.uses(v)) last = std::max(last, positions_.at(use.node));
    return last;
  }
  struct ByNode {
    bool operator()(const ir::Value& a, const ir::Value& b) const {
      return std::pair(a.node->id(), a.index) < std::pair(b.node->id(), b.index);
    }
  };

  const ir::Graph& graph_;
  const ir::Target& target_;
  const ir::UseMap uses_;
  std::unordered_map<const ir::Node*, int> positions_;
  std::unordered_set<const ir::Node*> taken_;
  Fusion fusion_;
};

}  // namespace

Fusion FindFusion(const ir::Graph& graph, const ir::Target& target) {
  return FusionSearch(graph, target).Run();
}

}  // namespace halftone::passes
