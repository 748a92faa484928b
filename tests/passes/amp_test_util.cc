#include "halftone/tests/passes/amp_test_util.h"

#include <algorithm>
#include <set>

#include "halftone/core/philox.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/verify.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/passes/amp/verify_amp_dtypes.h"

namespace halftone::testing {

const ir::Node& AmpRun::node(const std::string& name) const {
  const ir::Node* found = graph->FindNode(name);
  HT_CHECK(found != nullptr, "the graph has no node of that name");
  return *found;
}

std::string AmpRun::dtype(const std::string& name) const {
  const ir::AmpDecision& amp = node(name).amp;
  return amp.decided ? Name(amp.dtype) : "undecided";
}

std::vector<std::string> AmpRun::casts() const {
  std::vector<std::string> casts;
  for (const auto& n : graph->nodes()) {
    if (!passes::IsAmpCast(*n)) continue;
    casts.push_back(Concat("%", n->input(0).node->name(), " -> ", Name(n->output_type().dtype)));
  }
  std::sort(casts.begin(), casts.end());
  return casts;
}

std::unique_ptr<ir::Graph> ParseGraph(const std::string& text) {
  absl::StatusOr<std::unique_ptr<ir::Graph>> graph = ir::Parse(text);
  const std::string message = Message(graph.status());
  if (!graph.ok()) internal::CheckFailed(__FILE__, __LINE__, "graph text", message.c_str());
  return *std::move(graph);
}

std::string AmpText(const std::string& amp, const std::string& body) {
  return "graph @g(%x: f32[4,4], %y: f32[4,4], %ids: i64[4]) {\n"
         "  %w = variable \"w\" {} : f32[4,4]\n  %v = variable \"v\" {} : f32[4,4]\n  amp() {" +
         amp + "}\n" + body + "\n}\n";
}

absl::StatusOr<bool> RunPass(passes::Pass& pass, AmpRun* run, const std::string& target) {
  HT_ASSIGN_OR_RETURN(run->context.target, kernels::FindFixedTarget(target));
  HT_ASSIGN_OR_RETURN(bool changed, pass.Run(*run->graph, run->context));
  HT_RETURN_IF_ERROR(ir::Verify(*run->graph));
  return changed;
}

AmpRun RunAmp(std::unique_ptr<ir::Graph> graph, const std::string& target) {
  AmpRun run;
  run.graph = std::move(graph);
  run.status = RunPass(*passes::MakeInsertAmpCasts(), &run, target).status();
  if (run.status.ok()) run.status = passes::VerifyAmpDTypes(*run.graph);
  return run;
}

AmpRun RunAmp(const std::string& text, const std::string& target) {
  return RunAmp(ParseGraph(text), target);
}

std::unique_ptr<ir::Graph> ShuffleNodes(const ir::Graph& graph, uint64_t seed) {
  PhiloxStream random(seed);
  auto result = std::make_unique<ir::Graph>(graph.name());
  for (const ir::Variable& variable : graph.variables()) {
    HT_CHECK(result->AddVariable(variable).ok(), "a copied variable");
  }
  std::vector<const ir::Node*> waiting;
  for (const auto& node : graph.nodes()) waiting.push_back(node.get());
  std::map<const ir::Node*, ir::Node*> copies;
  auto ready = [&](const ir::Node* node) {
    return std::all_of(node->inputs().begin(), node->inputs().end(),
                       [&](ir::Value v) { return copies.count(v.node) > 0; });
  };
  while (!waiting.empty()) {
    std::vector<size_t> choices;
    for (size_t i = 0; i < waiting.size(); ++i) {
      if (ready(waiting[i])) choices.push_back(i);
    }
    const size_t pick = choices[random.Below(choices.size())];
    const ir::Node* node = waiting[pick];
    waiting.erase(waiting.begin() + static_cast<int64_t>(pick));
    std::vector<ir::Value> inputs;
    for (ir::Value v : node->inputs()) inputs.push_back(copies[v.node]->output(v.index));
    std::vector<ir::ValueType> types;
    for (int i = 0; i < node->num_outputs(); ++i) types.push_back(node->output_type(i));
    ir::Node* copy =
        result->AddNode(&node->op(), inputs, node->attrs(), types, node->name(), node->scope());
    copy->amp_request = node->amp_request;
    copies[node] = copy;
  }
  for (const ir::Output& output : graph.outputs()) {
    result->outputs().push_back(
        {output.name, copies[output.value.node]->output(output.value.index)});
  }
  return result;
}

}  // namespace halftone::testing
