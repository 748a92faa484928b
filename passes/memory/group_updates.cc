#include "halftone/passes/memory/group_updates.h"

#include <algorithm>
#include <set>

#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ops::UpdatePort;

bool Runs(const ir::Node& node) {
  return !IsSource(node) && !IsOp(node, "commit") && !IsStorageAlias(node) && !IsKeptCast(node);
}

// The hyper-parameters: all attributes but those that passes of this folder set, and the seed, which
// is each parameter's own.
std::vector<ir::Attributes::Entry> Hypers(const ir::Node& update) {
  std::vector<ir::Attributes::Entry> hypers;
  for (const ir::Attributes::Entry& entry : update.attrs().entries()) {
    if (entry.first != "group" && entry.first != "low" && entry.first != "seed") {
      hypers.push_back(entry);
    }
  }
  return hypers;
}

// Whether one launch can do both: it reads attributes and scalar operands once.
bool CanJoin(const ir::Node& a, const ir::Node& b) {
  if (&a.op() != &b.op() || a.num_inputs() != b.num_inputs() ||
      a.output_type().dtype != b.output_type().dtype) {
    return false;
  }
  for (int port = UpdatePort::kLr; port <= UpdatePort::kStep; ++port) {
    if (!(a.input(port) == b.input(port))) return false;
  }
  const auto of_a = Hypers(a), of_b = Hypers(b);
  return std::equal(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                    [](const auto& x, const auto& y) {
                      return x.first == y.first && ir::Equal(x.second, y.second);
                    });
}

const ir::Node* Origin(ir::Value v) {
  while (IsStorageAlias(*v.node)) v = v.node->input(0);
  return v.node;
}

// Launches as LaunchesOf has them, of neighbours that `may_join` allows, which sees the first of a
// launch and the next node.
template <typename MayJoin>
std::vector<int> FindLaunches(const ir::Graph& graph, const MayJoin& may_join) {
  std::vector<int> firsts;
  const ir::Node* first = nullptr;  // of the last launch
  int first_position = 0;
  std::set<const ir::Node*> members;
  for (const auto& node : graph.nodes()) {
    const auto position = static_cast<int>(firsts.size());
    firsts.push_back(position);
    if (!Runs(*node)) continue;
    const bool joins =
        first != nullptr && IsUpdate(*node) && IsUpdate(*first) && CanJoin(*first, *node) &&
        may_join(*first, *node) &&
        std::none_of(node->inputs().begin(), node->inputs().end(),
                     [&members](ir::Value v) { return members.contains(Origin(v)); });
    if (!joins) {
      first = node.get();
      first_position = position;
      members.clear();
    }
    firsts.back() = first_position;
    members.insert(node.get());
  }
  return firsts;
}

class GroupUpdates : public Pass {
 public:
  const char* name() const override { return "group-updates"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const ir::Target& target = *context.target;
    const std::vector<int> firsts =
        FindLaunches(graph, [&target](const ir::Node& first, const ir::Node&) {
          return target.JoinsUpdates(first.op().name);
        });
    std::vector<int64_t> sizes(firsts.size()), numbers(firsts.size());
    for (const int first : firsts) ++sizes[static_cast<size_t>(first)];
    bool changed = false;
    int64_t groups = 0;
    for (size_t p = 0; p < firsts.size(); ++p) {
      ir::Node& node = *graph.nodes()[p];
      if (!IsUpdate(node) || !target.JoinsUpdates(node.op().name)) continue;
      const auto first = static_cast<size_t>(firsts[p]);
      if (first == p && sizes[p] > 1) numbers[p] = ++groups;
      if (node.attrs().GetInt("group") != numbers[first]) {
        node.mutable_attrs().Set("group", numbers[first]);
        changed = true;
      }
      context.stats["grouped_updates"] += numbers[first] > 0 ? 1 : 0;
    }
    context.stats["groups"] += groups;
    return changed;
  }
};

}  // namespace

bool IsUpdate(const ir::Node& node) { return node.attrs().Has("group"); }

std::vector<int> LaunchesOf(const ir::Graph& graph) {
  return FindLaunches(graph, [](const ir::Node& first, const ir::Node& next) {
    const int64_t number = first.attrs().GetInt("group");
    return number > 0 && next.attrs().GetInt("group") == number;
  });
}

std::unique_ptr<Pass> MakeGroupUpdates() { return std::make_unique<GroupUpdates>(); }

}  // namespace halftone::passes
