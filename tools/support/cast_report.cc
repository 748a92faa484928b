#include "halftone/tools/support/cast_report.h"

#include <memory>
#include <vector>

#include "halftone/graph/runtime/compile.h"
#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/island_cost.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/rewrite/fuse.h"
#include "halftone/passes/rewrite/graph_phase.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tools/support/table.h"

namespace halftone::tools {
namespace {

bool ChangesPrecision(const ir::Node& node) {
  return passes::IsCast(node) && IsFloat(node.input_type(0).dtype) &&
         IsFloat(node.output_type().dtype) &&
         IsLow(node.input_type(0).dtype) != IsLow(node.output_type().dtype);
}

bool IsOfWeight(const ir::Node& cast) {
  const ir::Node* from = cast.input(0).node;
  while (passes::IsStorageAlias(*from) || passes::IsOp(*from, "relayout")) {
    from = from->input(0).node;
  }
  return passes::IsOp(*from, "variable");
}

// Gives every operand that reads a cast of mixed precision a cast of its own.
void CastAtEveryOperand(ir::Graph& graph) {
  std::vector<ir::Node*> nodes;
  for (const auto& node : graph.nodes()) nodes.push_back(node.get());
  std::set<const ir::Node*> taken;
  const auto own = [&](ir::Value value) -> ir::Value {
    const ir::Node& cast = *value.node;
    if (!passes::IsAmpCast(cast) || taken.insert(&cast).second) return value;
    ir::Node* copy = graph.AddNode(&cast.op(), cast.inputs(), cast.attrs(), {cast.output_type()},
                                   cast.name(), cast.scope());
    copy->provenance = cast.provenance;
    copy->recompute = cast.recompute;
    return copy->output();
  };
  for (ir::Node* node : nodes) {
    for (int i = 0; i < node->num_inputs(); ++i) node->set_input(i, own(node->input(i)));
  }
  for (ir::Output& output : graph.outputs()) output.value = own(output.value);
}

absl::StatusOr<std::unique_ptr<ir::Graph>> LowerNaively(const ir::Graph& traced,
                                                        const ir::Target& target) {
  std::unique_ptr<ir::Graph> graph = traced.Clone();
  passes::ForbidFusion(*graph);
  passes::PassManagerOptions options;
  options.stop_after = "verify-amp-dtypes";
  HT_RETURN_IF_ERROR(runtime::Lower(*graph, target, options));
  CastAtEveryOperand(*graph);
  HT_RETURN_IF_ERROR(graph->Sort());
  options.stop_after.clear();
  // All that would have fewer casts, or expects it.
  options.filter =
      "-simplify,-eliminate-common-subexpressions,-verify-amp-dtypes,-clean-up-casts,"
      "-keep-low-weights";
  HT_RETURN_IF_ERROR(runtime::Lower(*graph, target, options));
  return graph;
}

std::vector<std::string> Row(const char* kind, const CastTraffic& naive, const CastTraffic& step) {
  return {kind, Concat(naive.casts), FormatBytes(static_cast<double>(naive.bytes)),
          Concat(step.casts), FormatBytes(static_cast<double>(step.bytes))};
}

}  // namespace

CastTraffic CastsOfStep::total() const {
  return {weights.casts + activations.casts + gradients.casts,
          weights.bytes + activations.bytes + gradients.bytes};
}

CastsOfStep CountCasts(const ir::Graph& lowered) {
  CastsOfStep count;
  const std::vector<passes::Phase> phases = passes::PhasesOf(lowered);
  for (size_t p = 0; p < phases.size(); ++p) {
    const ir::Node& node = *lowered.nodes()[p];
    if (!ChangesPrecision(node) || passes::IsKeptCast(node)) continue;
    CastTraffic& kind = IsOfWeight(node)                       ? count.weights
                        : phases[p] == passes::Phase::kForward ? count.activations
                                                               : count.gradients;
    ++kind.casts;
    kind.bytes += static_cast<int64_t>(passes::CastBytes(node.output_type()));
  }
  return count;
}

absl::StatusOr<CastReport> MakeCastReport(const ir::Graph& traced, const ir::Target& target) {
  if (passes::FindMarker(traced, "amp") == nullptr) {
    return FailedPrecondition("graph @", traced.name(), " has no `amp` marker");
  }
  CastReport report;
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> naive, LowerNaively(traced, target));
  report.naive = CountCasts(*naive);
  const std::unique_ptr<ir::Graph> step = traced.Clone();
  HT_RETURN_IF_ERROR(runtime::Lower(*step, target));
  report.step = CountCasts(*step);
  for (const auto& node : step->nodes()) report.kept += passes::IsKeptCast(*node) ? 1 : 0;
  return report;
}

std::string ToText(const CastReport& report) {
  const CastsOfStep &naive = report.naive, &step = report.step;
  return FormatTable({{"casts a step", ">at each operand", ">bytes", ">as it runs", ">bytes"},
                      Row("weights", naive.weights, step.weights),
                      Row("activations", naive.activations, step.activations),
                      Row("gradients", naive.gradients, step.gradients),
                      Row("all", naive.total(), step.total())}) +
         Concat("casts of weights kept from step to step: ", report.kept, "\n");
}

}  // namespace halftone::tools
