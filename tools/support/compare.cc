#include "halftone/tools/support/compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tools/support/kept_step.h"
#include "halftone/tools/support/table.h"

namespace halftone::tools {
namespace {

absl::StatusOr<std::vector<Tensor>> Evaluate(const ir::Node& node, const Values& values,
                                             uint64_t run_count) {
  std::vector<Tensor> operands;
  for (const ir::Value& v : node.inputs()) operands.push_back(values.at({v.node->id(), v.index}));
  return kernels::ReferenceEvaluator(run_count).Evaluate(node, operands);
}

const ValueError* First(const Comparison& comparison, double tolerance, double ValueError::*error) {
  const auto over = [&](const ValueError& v) { return !(v.*error <= tolerance); };
  const auto found = std::find_if(comparison.values.begin(), comparison.values.end(), over);
  return found == comparison.values.end() ? nullptr : &*found;
}

// "%h (matmul, cpu:onednn:matmul), error 0.5, own error 0".
std::string Describe(const ValueError& v) {
  return Concat(v.value, " (", v.op, v.kernel.empty() ? "" : ", ", v.kernel, "), error ",
                FormatNumber(v.error), ", own error ", FormatNumber(v.own_error));
}

}  // namespace

double RelativeError(const Tensor& got, const Tensor& want) {
  double largest = 0, difference = 0;
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const double g = got.at(i), w = want.at(i);
    if (std::isfinite(w)) largest = std::max(largest, std::fabs(w));
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    if (!std::isfinite(g) || !std::isfinite(w)) return std::numeric_limits<double>::infinity();
    difference = std::max(difference, std::fabs(g - w));
  }
  return largest > 0 ? difference / largest : difference;
}

absl::StatusOr<Comparison> CompareWithReference(const ir::Graph& lowered, const Device& device,
                                                uint64_t seed, runtime::VariableStore& store,
                                                const std::vector<Tensor>& feeds,
                                                uint64_t run_count) {
  HT_ASSIGN_OR_RETURN(KeptStep step, KeptStep::Create(lowered, device, seed, store));
  const ir::Graph& compiled = step.graph();
  Values want = step.Sources(feeds);
  HT_ASSIGN_OR_RETURN(const Values got, step.Run(feeds, run_count));
  std::map<int64_t, std::string> kernels = step.KernelNames();
  Comparison comparison;
  for (const auto& node : compiled.nodes()) {
    if (passes::IsSource(*node) || node->num_outputs() == 0) continue;
    HT_ASSIGN_OR_RETURN(const std::vector<Tensor> end_to_end, Evaluate(*node, want, run_count));
    HT_ASSIGN_OR_RETURN(const std::vector<Tensor> own, Evaluate(*node, got, run_count));
    for (int i = 0; i < node->num_outputs(); ++i) {
      const Tensor& value = got.at({node->id(), i});
      const auto index = static_cast<size_t>(i);
      want[{node->id(), i}] = end_to_end[index];
      comparison.values.push_back({node->output(i).ToString(), node->op().name,
                                   node->output_type(i).ToString(), kernels[node->id()],
                                   RelativeError(value, end_to_end[index]),
                                   RelativeError(value, own[index])});
      if (IsLow(value.dtype())) comparison.usual_tolerance = kLowTolerance;
    }
  }
  return comparison;
}

const ValueError* FirstOver(const Comparison& comparison, double tolerance) {
  return First(comparison, tolerance, &ValueError::error);
}

const ValueError* FirstKernelOver(const Comparison& comparison, double tolerance) {
  return First(comparison, tolerance, &ValueError::own_error);
}

std::string ToTable(const Comparison& comparison, double tolerance, size_t limit) {
  std::vector<ValueError> order = comparison.values;
  std::stable_sort(order.begin(), order.end(),
                   [](const ValueError& a, const ValueError& b) { return a.error > b.error; });
  const size_t left_out = order.size() > limit ? order.size() - limit : 0;
  order.resize(order.size() - left_out);
  std::vector<std::vector<std::string>> rows = {
      {"value", "op", "type", ">error", ">own error", "kernel"}};
  for (const ValueError& row : order) {
    rows.push_back({row.value, row.op, row.type, FormatNumber(row.error),
                    FormatNumber(row.own_error), row.kernel});
  }
  std::string text = FormatTable(std::move(rows));
  if (left_out > 0) text += Concat("and ", left_out, " more\n");
  const ValueError* first = FirstOver(comparison, tolerance);
  const ValueError* kernel = FirstKernelOver(comparison, tolerance);
  if (first == nullptr && kernel == nullptr) {
    return text + Concat("all ", comparison.values.size(), " values are within ", tolerance, "\n");
  }
  if (first != nullptr) {
    text += Concat("first value over ", tolerance, " in the order of the step: ", Describe(*first),
                   "\n");
  }
  text += kernel != nullptr
              ? Concat("first kernel over it on equal operands: ", Describe(*kernel), "\n")
              : Concat(
                    "on equal operands every kernel is within it: no kernel is wrong, small "
                    "differences grew\n");
  return text;
}

}  // namespace halftone::tools
