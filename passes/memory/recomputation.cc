#include "halftone/passes/memory/recomputation.h"

#include <vector>

#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/rewrite/eliminate_dead_code.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

absl::Status SortAndTidy(ir::Graph& graph) {
  HT_RETURN_IF_ERROR(graph.Sort());
  PassContext unused;
  return MakeEliminateDeadCode()->Run(graph, unused).status();
}

class Repeater {
 public:
  Repeater(ir::Graph& graph, const Repeats& repeats) : graph_(graph), repeats_(repeats) {}

  void Run() {
    const std::vector<ir::Node*> nodes = Snapshot(graph_);
    for (ir::Node* node : nodes) RepeatNode(*node);
    for (size_t p = 0; p < nodes.size(); ++p) {
      for (int i = 0; i < nodes[p]->num_inputs(); ++i) {
        nodes[p]->set_input(i, ReadAt(nodes[p]->input(i), static_cast<int>(p)));
      }
    }
  }

 private:
  using ValueId = std::pair<int64_t, int>;
  struct Made {
    ir::Value value;
    int from = 0;
  };

  ir::Value ReadAt(ir::Value v, int position) const {
    const auto made = made_.find({v.node->id(), v.index});
    return made != made_.end() && position >= made->second.from ? made->second.value : v;
  }

  // In the order of the nodes, so that the repetitions of its operands are there.
  void RepeatNode(const ir::Node& node) {
    const Repeat* first = nullptr;
    std::vector<int> froms(static_cast<size_t>(node.num_outputs()), -1);
    for (int i = 0; i < node.num_outputs(); ++i) {
      const auto repeat = repeats_.find({node.id(), i});
      if (repeat == repeats_.end()) continue;
      froms[static_cast<size_t>(i)] = repeat->second.from;
      if (first == nullptr || repeat->second.from < first->from) first = &repeat->second;
    }
    Repeat as_operand;
    if (first == nullptr && IsStorageAlias(node)) {
      const ir::Value operand = node.input(0);
      const auto made = made_.find({operand.node->id(), operand.index});
      if (made == made_.end()) return;
      as_operand = {made->second.from, made->second.value.node->recompute};
      froms = {as_operand.from};
      first = &as_operand;
    }
    if (first == nullptr) return;
    ir::Node& again = Copy(node, *first);
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (froms[static_cast<size_t>(i)] < 0) continue;
      made_[{node.id(), i}] = {again.output(i), froms[static_cast<size_t>(i)]};
    }
  }

  ir::Node& Copy(const ir::Node& node, const Repeat& repeat) {
    std::vector<ir::Value> inputs;
    for (const ir::Value& v : node.inputs()) inputs.push_back(ReadAt(v, repeat.from));
    std::vector<ir::ValueType> types;
    for (int i = 0; i < node.num_outputs(); ++i) types.push_back(node.output_type(i));
    ir::Node& again = *graph_.AddNode(&node.op(), std::move(inputs), node.attrs(), std::move(types),
                                      node.name() + ".again", node.scope());
    again.location = node.location;
    again.amp = node.amp;
    again.amp_request = node.amp_request;
    again.provenance = {kRematerialise, node.name()};
    again.recompute = repeat.why;
    return again;
  }

  ir::Graph& graph_;
  const Repeats& repeats_;
  std::map<ValueId, Made> made_;  // and reshapes of them
};

}  // namespace

absl::Status RepeatValues(ir::Graph& graph, const Repeats& repeats) {
  if (repeats.empty()) return absl::OkStatus();
  Repeater(graph, repeats).Run();
  return SortAndTidy(graph);
}

absl::StatusOr<std::unique_ptr<ir::Graph>> WithoutRepeats(const ir::Graph& graph) {
  std::unique_ptr<ir::Graph> once = graph.Clone();
  Replacements replacements;
  for (const auto& node : once->nodes()) {
    if (!IsRecomputed(*node)) continue;
    const ir::Node* original = once->FindNode(node->provenance.from);
    if (original == nullptr || original->num_outputs() != node->num_outputs()) continue;
    for (int i = 0; i < node->num_outputs(); ++i) {
      replacements.Replace(node->output(i), original->output(i));
    }
  }
  replacements.Finish(*once);
  HT_RETURN_IF_ERROR(SortAndTidy(*once));
  return once;
}

}  // namespace halftone::passes
