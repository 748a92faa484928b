#include "halftone/passes/memory/advance_updates.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/fault_order.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// What values are needed for, by the node whose bytes they are.
class Positions {
 public:
  explicit Positions(const ir::Graph& graph) {
    const std::set<const ir::Node*> faults = NodesThatMayFaultFirst(graph);
    for (const auto& node : graph.nodes()) {
      const auto position = static_cast<int>(at_.size());
      at_[node.get()] = position;
      ready_[node.get()] = ReadyOf(*node, position);
      if (faults.contains(node.get())) last_fault_ = position;
      if (IsStorageAlias(*node)) continue;  // its readers count
      const bool at_end = IsOp(*node, "commit");
      for (const ir::Value v : node->inputs()) {
        readers_[Origin(v)].push_back(at_end ? kEnd : position);
      }
    }
    for (const ir::Output& output : graph.outputs()) results_.insert(Origin(output.value));
  }

  // The node behind which the update can run; where it is, if not earlier.
  int Earliest(const ir::Node& update) const {
    const int here = at_.at(&update);
    if (results_.contains(&update)) return here;
    int earliest = last_fault_;
    for (const ir::Value v : update.inputs()) earliest = std::max(earliest, ready_.at(v.node));
    for (const ir::InPlacePair& pair : update.op().in_place) {
      if (pair.input >= update.num_inputs()) continue;
      const ir::Node* old = Origin(update.input(pair.input));
      if (!IsOp(*old, "variable")) continue;
      if (results_.contains(old)) return here;
      for (const int reader : readers_.at(old)) {
        if (reader != here) earliest = std::max(earliest, reader);
      }
    }
    return std::min(earliest, here);
  }

 private:
  static constexpr int kEnd = 1 << 30;

  // Whose bytes they are. A cast of a variable counts as the variable: where casts are kept, an update
  // writes them too.
  static const ir::Node* Origin(ir::Value v) {
    const auto is_of_variable = [](const ir::Node& cast) {
      ir::Value of = cast.input(0);
      while (IsStorageAlias(*of.node)) of = of.node->input(0);
      return IsOp(*of.node, "variable");
    };
    while (IsStorageAlias(*v.node) || (IsCast(*v.node) && is_of_variable(*v.node))) {
      v = v.node->input(0);
    }
    return v.node;
  }

  // Where a node can run: a source anywhere, a number as soon as its operands are there, others where
  // they are.
  int ReadyOf(const ir::Node& node, int position) const {
    if (IsSource(node)) return -1;
    const ir::OpRecord& op = node.op();
    if (op.is_random || op.communicates || op.has_side_effect || op.can_fault()) return position;
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (node.output_type(i).num_elements() != 1) return position;
    }
    int ready = -1;
    for (const ir::Value v : node.inputs()) ready = std::max(ready, ready_.at(v.node));
    return ready;
  }

  std::map<const ir::Node*, int> at_, ready_;
  std::map<const ir::Node*, std::vector<int>> readers_;
  std::set<const ir::Node*> results_;
  int last_fault_ = -1;
};

class AdvanceUpdates : public Pass {
 public:
  const char* name() const override { return "advance-updates"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const Positions positions(graph);
    // Behind which node each comes, and whether it moved there.
    std::vector<std::pair<std::pair<int, bool>, ir::Node*>> places;
    int64_t advanced = 0;
    for (const auto& node : graph.nodes()) {
      const auto here = static_cast<int>(places.size());
      int place = here;
      if (node->attrs().Has("group") && !context.target->JoinsUpdates(node->op().name)) {
        place = positions.Earliest(*node);
      }
      // Right behind the node it waits for is no move.
      const bool moves = place + 1 < here && HasWorkBetween(graph, place, here);
      if (!moves) place = here;
      advanced += moves ? 1 : 0;
      places.push_back({{place, moves}, node.get()});
    }
    context.stats["advanced"] += advanced;
    if (advanced == 0) return false;
    std::stable_sort(places.begin(), places.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<ir::Node*> order;
    order.reserve(places.size());
    for (const auto& place : places) order.push_back(place.second);
    graph.Reorder(order);
    HT_RETURN_IF_ERROR(graph.Sort());
    return true;
  }

 private:
  // Whether something else than updates and numbers runs between the two: else nothing is gained.
  static bool HasWorkBetween(const ir::Graph& graph, int begin, int end) {
    for (int p = end - 1; p > begin; --p) {
      const ir::Node& node = *graph.nodes()[static_cast<size_t>(p)];
      if (IsSource(node) || node.num_outputs() == 0 || node.attrs().Has("group")) continue;
      if (node.output_type().num_elements() != 1) return true;
    }
    return false;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeAdvanceUpdates() { return std::make_unique<AdvanceUpdates>(); }

}  // namespace halftone::passes
