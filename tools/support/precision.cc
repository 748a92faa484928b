#include "halftone/tools/support/precision.h"

#include <algorithm>
#include <iterator>
#include <set>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/passes/amp/policy.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tools/support/amp_table.h"
#include "halftone/tools/support/compare.h"
#include "halftone/tools/support/culprits.h"
#include "halftone/tools/support/kept_step.h"
#include "halftone/tools/support/table.h"

namespace halftone::tools {
namespace {

// A step ready to run, from the state that `source` gives.
struct Prepared {
  std::unique_ptr<ir::Graph> lowered;
  runtime::VariableStore store;
  uint64_t run_count = 0;
};

absl::Status Prepare(const StepSource& source, DType dtype,
                     const std::vector<std::string>& f32_paths,
                     const std::vector<std::string>& fetch, Prepared& prepared) {
  HT_ASSIGN_OR_RETURN(const auto graph, InPrecision(source.traced, dtype, f32_paths));
  HT_ASSIGN_OR_RETURN(FetchedGraph fetched, LowerForFetches(*graph, fetch, source.device, "",
                                                            /*fuse=*/false));
  prepared.lowered = std::move(fetched.lowered);
  HT_ASSIGN_OR_RETURN(prepared.run_count, source.load(*prepared.lowered, prepared.store));
  return absl::OkStatus();
}

// Takes in a value, and what stands for the same bytes.
void AddRange(const ir::UseMap& uses, ir::Value value, const Tensor& tensor,
              amp::RangeReport& ranges) {
  ranges.Add(value, tensor);
  for (const ir::UseMap::Use& use : uses.uses(value)) {
    if (passes::IsStorageAlias(*use.node)) AddRange(uses, use.node->output(), tensor, ranges);
  }
}

// What the step is given, where f16 cannot hold it.
absl::Status AddLargeSources(const ir::UseMap& uses, const ir::Graph& graph,
                             const std::vector<Tensor>& feeds, const runtime::VariableStore& store,
                             amp::RangeReport& ranges) {
  size_t input = 0;
  for (const auto& node : graph.nodes()) {
    Tensor value;
    if (passes::IsOp(*node, "input")) value = feeds[input++];
    if (passes::IsOp(*node, "variable")) {
      const auto storage = store.Find(node->attrs().GetString("name"));
      HT_RETURN_IF_ERROR(storage->FetchToHost());
      value = storage->value();
    }
    if (!value.defined() || !IsFloat(value.dtype())) continue;
    amp::Range range;
    range.Add(value);
    if (range.overflows > 0) AddRange(uses, node->output(), value, ranges);
  }
  return absl::OkStatus();
}

// Runs `count` steps; the outputs of the last. `ranges` takes in all values, where it is not null.
absl::StatusOr<std::vector<Tensor>> RunSteps(const StepSource& source, int count,
                                             Prepared& prepared,
                                             amp::RangeReport* ranges = nullptr) {
  std::vector<Tensor> outputs;
  if (count == 0) return outputs;
  HT_ASSIGN_OR_RETURN(Step step, Step::Create(prepared.lowered->Clone(), source.device, source.seed,
                                              prepared.store));
  const ir::Graph& graph = step.executable().graph();
  const ir::UseMap uses(graph);
  if (ranges != nullptr) {
    step.executable().set_watch([&uses, ranges](ir::Value value, const Tensor& tensor) {
      AddRange(uses, value, tensor, *ranges);
      return absl::OkStatus();
    });
  }
  for (int i = 0; i < count; ++i) {
    if (ranges != nullptr) {
      HT_RETURN_IF_ERROR(AddLargeSources(uses, graph, source.feeds, prepared.store, *ranges));
    }
    HT_ASSIGN_OR_RETURN(outputs, step.Run(source.feeds, prepared.run_count++));
  }
  return outputs;
}

// A value of the last step.
struct SeenValue {
  std::string name, op, type;
  Tensor tensor;
};

// Floats that a step computes, in its order.
std::vector<SeenValue> SeenValues(const ir::Graph& graph, const Values& values) {
  std::vector<SeenValue> seen;
  for (const auto& node : graph.nodes()) {
    if (passes::IsSource(*node)) continue;
    for (int i = 0; i < node->num_outputs(); ++i) {
      if (!IsFloat(node->output_type(i).dtype)) continue;
      seen.push_back({node->output(i).ToString(), node->op().name, node->output_type(i).ToString(),
                      values.at({node->id(), i})});
    }
  }
  return seen;
}

absl::StatusOr<std::vector<SeenValue>> RunIn(const StepSource& source, DType dtype) {
  Prepared prepared;
  HT_RETURN_IF_ERROR(Prepare(source, dtype, {}, {}, prepared));
  HT_RETURN_IF_ERROR(RunSteps(source, source.steps - 1, prepared).status());
  HT_ASSIGN_OR_RETURN(KeptStep step, KeptStep::Create(*prepared.lowered, source.device, source.seed,
                                                      prepared.store));
  HT_ASSIGN_OR_RETURN(const Values values, step.Run(source.feeds, prepared.run_count));
  return SeenValues(step.graph(), values);
}

// The outputs of the last step.
absl::StatusOr<std::vector<Tensor>> OutputsIn(const StepSource& source, DType dtype,
                                              const std::vector<std::string>& f32_paths) {
  Prepared prepared;
  HT_RETURN_IF_ERROR(Prepare(source, dtype, f32_paths, source.fetch, prepared));
  return RunSteps(source, source.steps, prepared);
}

bool AllWithin(const std::vector<Tensor>& got, const std::vector<Tensor>& want, double tolerance) {
  for (size_t i = 0; i < want.size(); ++i) {
    if (!IsFloat(want[i].dtype())) continue;
    if (!(RelativeError(got[i], want[i]) <= tolerance)) return false;
  }
  return true;
}

// The policy that `traced` asks for, in `low` and with more denied, which then stand in no other list.
amp::Policy PolicyIn(const ir::Graph& traced, DType low, const std::vector<std::string>& denied) {
  amp::Policy policy;
  if (const ir::Node* marker = passes::FindMarker(traced, "amp"); marker != nullptr) {
    policy = amp::Policy::FromMarker(*marker);
  }
  policy.dtype = low;
  for (std::vector<std::string>* list :
       {&policy.allow, &policy.infer, &policy.clear, &policy.deny}) {
    std::erase_if(*list, [&denied](const std::string& entry) {
      return std::find(denied.begin(), denied.end(), entry) != denied.end();
    });
  }
  policy.deny.insert(policy.deny.end(), denied.begin(), denied.end());
  return policy;
}

// Nodes that are 16-bit, in the order of the step.
absl::StatusOr<std::vector<std::string>> LowNodes(const StepSource& source, DType low) {
  HT_ASSIGN_OR_RETURN(const auto graph, InPrecision(source.traced, low));
  HT_ASSIGN_OR_RETURN(const auto target, runtime::TargetOf(source.device));
  HT_ASSIGN_OR_RETURN(const passes::AmpReport report, DecideAmp(*graph, *target));
  std::vector<std::string> paths;
  for (const passes::AmpReportRow& row : report.rows) {
    if (IsLow(row.dtype)) paths.push_back(row.node);
  }
  return paths;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Graph>> InPrecision(const ir::Graph& traced, DType low,
                                                       const std::vector<std::string>& f32_paths) {
  for (const auto& node : traced.nodes()) {
    if (!node->amp.decided) continue;
    return InvalidArgument("the precision of %", node->name(),
                           " is decided already; expected a graph as traced");
  }
  std::unique_ptr<ir::Graph> graph = traced.Clone();
  if (ir::Node* marker = passes::FindMarker(*graph, "amp"); marker != nullptr) {
    graph->Remove({marker});
  }
  if (!IsLow(low)) return graph;
  ir::Builder builder(graph.get());
  builder.Root("amp", {}, PolicyIn(traced, low, f32_paths).ToMarker());
  HT_RETURN_IF_ERROR(builder.status());
  return graph;
}

absl::StatusOr<std::vector<PrecisionDifference>> ComparePrecisions(const StepSource& source,
                                                                   DType left, DType right) {
  HT_ASSIGN_OR_RETURN(const std::vector<SeenValue> wanted, RunIn(source, left));
  HT_ASSIGN_OR_RETURN(const std::vector<SeenValue> seen, RunIn(source, right));
  std::map<std::string, const SeenValue*> by_name;
  for (const SeenValue& value : seen) by_name[value.name] = &value;
  std::vector<PrecisionDifference> differences;
  for (const SeenValue& want : wanted) {
    const auto got = by_name.find(want.name);
    if (got == by_name.end() || got->second->op != want.op) continue;
    const SeenValue& other = *got->second;
    if (other.tensor.shape() != want.tensor.shape()) continue;
    differences.push_back(
        {want.name, want.op, want.type, other.type, RelativeError(other.tensor, want.tensor)});
  }
  return differences;
}

const PrecisionDifference* FirstOver(const std::vector<PrecisionDifference>& differences,
                                     double tolerance) {
  const auto over = [&](const PrecisionDifference& d) { return !(d.error <= tolerance); };
  const auto first = std::find_if(differences.begin(), differences.end(), over);
  return first == differences.end() ? nullptr : &*first;
}

std::string ToTable(const std::vector<PrecisionDifference>& differences, double tolerance,
                    size_t limit) {
  std::vector<PrecisionDifference> order = differences;
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.error > b.error; });
  std::vector<std::vector<std::string>> rows = {{"value", "op", "type", "other type", ">error"}};
  for (const PrecisionDifference& d : order) {
    if (rows.size() > limit) break;
    rows.push_back({d.value, d.op, d.left_type, d.right_type, FormatNumber(d.error)});
  }
  const size_t shown = rows.size() - 1;
  std::string text = FormatTable(std::move(rows));
  if (order.size() > shown) text += Concat("and ", order.size() - shown, " more\n");
  const PrecisionDifference* first = FirstOver(differences, tolerance);
  if (first == nullptr) {
    return text + Concat("all ", differences.size(), " values are within ", tolerance, "\n");
  }
  return text + Concat("first value over ", tolerance, " in the order of the step: ", first->value,
                       " (", first->op, "), error ", FormatNumber(first->error), "\n");
}

absl::StatusOr<amp::RangeReport> MeasureRanges(const StepSource& source) {
  Prepared prepared;
  HT_RETURN_IF_ERROR(Prepare(source, DType::kF32, {}, {}, prepared));
  amp::RangeReport report;
  HT_RETURN_IF_ERROR(RunSteps(source, source.steps, prepared, &report).status());
  return report;
}

amp::Policy ProposedPolicy(const amp::RangeReport& report, const ir::Graph& traced) {
  return PolicyIn(traced, DType::kF16, report.Propose(traced).deny);
}

std::string ToTable(const amp::RangeReport& report, const ir::Graph& traced, size_t limit) {
  std::vector<std::vector<std::string>> rows = {{"value", "op", ">largest", ">smallest not 0",
                                                 ">overflow in f16", ">become 0", ">not finite"}};
  const std::vector<amp::RangeRow> all = report.Rows();
  for (const amp::RangeRow& row : all) {
    if (rows.size() > limit) break;
    const amp::Range& r = row.range;
    const auto share = [&](int64_t part) {
      return FormatShare(static_cast<double>(part), static_cast<double>(r.elements));
    };
    rows.push_back({row.value, row.op, FormatNumber(r.largest),
                    r.zeros + r.non_finite == r.elements ? "-" : FormatNumber(r.smallest),
                    share(r.overflows), share(r.underflows), share(r.non_finite)});
  }
  const size_t shown = rows.size() - 1;
  std::string text = FormatTable(std::move(rows));
  if (all.size() > shown) text += Concat("and ", all.size() - shown, " more\n");
  if (report.Propose(traced).deny.empty()) {
    return text + "no node of the graph as traced leaves the range of f16\n";
  }
  return text + "a policy that keeps f32 what leaves the range of f16:\n" +
         ProposedPolicy(report, traced).ToString();
}

absl::StatusOr<Culprits> FindCulpritNodes(const StepSource& source, DType low, double tolerance) {
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> in_order, LowNodes(source, low));
  Prepared wide;
  HT_RETURN_IF_ERROR(Prepare(source, DType::kF32, {}, source.fetch, wide));
  amp::RangeReport ranges;
  HT_ASSIGN_OR_RETURN(const std::vector<Tensor> want,
                      RunSteps(source, source.steps, wide, low == DType::kF16 ? &ranges : nullptr));
  const std::vector<std::string> denied = ranges.Propose(source.traced).deny;
  const std::set<std::string> suspects(denied.begin(), denied.end());
  std::vector<std::string> candidates = in_order;
  const auto others = std::stable_partition(
      candidates.begin(), candidates.end(),
      [&suspects](const std::string& path) { return suspects.count(path) != 0; });
  Culprits culprits;
  culprits.suspects = static_cast<size_t>(others - candidates.begin());
  culprits.candidates = candidates.size();
  culprits.runs = 1;
  const auto works = [&](const std::vector<std::string>& f32_paths) -> absl::StatusOr<bool> {
    ++culprits.runs;
    HT_ASSIGN_OR_RETURN(const std::vector<Tensor> got, OutputsIn(source, low, f32_paths));
    return AllWithin(got, want, tolerance);
  };
  auto found = FindCulprits(candidates, works, culprits.suspects);
  if (!found.ok())
    return Annotate(found.status(), Concat("outputs stay farther than ", tolerance,
                                           " from those in f32: nodes in ", Name(low), ": "));
  const std::set<std::string> at_fault(found->begin(), found->end());
  std::copy_if(in_order.begin(), in_order.end(), std::back_inserter(culprits.paths),
               [&at_fault](const std::string& path) { return at_fault.count(path) != 0; });
  culprits.policy = PolicyIn(source.traced, low, culprits.paths);
  return culprits;
}

std::string ToText(const Culprits& culprits, double tolerance) {
  const std::string text = Concat(
      culprits.runs, " runs, ", culprits.candidates, " nodes in ", Name(*culprits.policy.dtype),
      culprits.suspects == 0 ? std::string()
                             : Concat(" (", culprits.suspects, " of them beyond its range)"),
      ": outputs are within ", tolerance, " of those in f32");
  if (culprits.paths.empty()) return text + "\n";
  return text + " with this policy:\n" + culprits.policy.ToString();
}

}  // namespace halftone::tools
