#include "halftone/tools/support/kept_step.h"

#include "halftone/graph/ops/support/record.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::tools {

absl::StatusOr<KeptStep> KeptStep::Create(const ir::Graph& lowered, const Device& device,
                                          uint64_t seed, runtime::VariableStore& store) {
  std::unique_ptr<ir::Graph> graph = lowered.Clone();
  graph->outputs().clear();
  for (const auto& node : graph->nodes()) {
    if (passes::IsSource(*node)) continue;
    // Updates that write beside their parameter what is kept of it write it in place.
    if (passes::IsKeptCast(*node)) node->mutable_attrs().Set("kept", false);
    if (passes::MayWriteLow(*node)) node->mutable_attrs().Set("low", DType::kF32);
    if (ops::IsPacked(*node)) node->mutable_attrs().Set("packed", false);
    for (int i = 0; i < node->num_outputs(); ++i) graph->outputs().push_back({"", node->output(i)});
  }
  HT_ASSIGN_OR_RETURN(Step step, Step::Create(std::move(graph), device, seed, store));
  return KeptStep(std::move(step), store);
}

Values KeptStep::Sources(const std::vector<Tensor>& feeds) {
  Values values;
  size_t input = 0;
  for (const auto& node : graph().nodes()) {
    const std::string& op = node->op().name;
    if (op == "input") values[{node->id(), 0}] = feeds[input++];
    if (op == "constant") values[{node->id(), 0}] = node->attrs().Get<Tensor>("value");
    if (op == "variable") {
      values[{node->id(), 0}] = store_->Find(node->attrs().GetString("name"))->value().Clone();
    }
  }
  return values;
}

absl::StatusOr<Values> KeptStep::Run(const std::vector<Tensor>& feeds, uint64_t run_count) {
  Values values = Sources(feeds);
  HT_ASSIGN_OR_RETURN(const std::vector<Tensor> results, step_.Run(feeds, run_count));
  for (size_t i = 0; i < results.size(); ++i) {
    const ir::Value value = graph().outputs()[i].value;
    values[{value.node->id(), value.index}] = results[i];
  }
  return values;
}

std::map<int64_t, std::string> KeptStep::KernelNames() {
  std::map<int64_t, std::string> names;
  for (const auto& s : step_.executable().steps()) names[s.node->id()] = s.kernel->name();
  return names;
}

}  // namespace halftone::tools
