// What a graph tells of one step by running it again beside the training: where its infinities
// began, and how its gradients fit f16. See Graph::first_nonfinite_node and
// ScalerHandle::measure_gradients.
#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "halftone/graph/nn/graph_impl.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/graph/runtime/find_nonfinite.h"
#include "halftone/graph/runtime/replay.h"
#include "halftone/graph/runtime/scaled_values.h"
#include "halftone/optim/update_rule.h"
#include "halftone/passes/rewrite/fuse.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::nn {
namespace {

using runtime::SeenRanges;

double Share(int64_t part, int64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

// Values of all micro-batches together.
void AddAll(const SeenRanges& more, SeenRanges& ranges) {
  for (const auto& [key, range] : more) ranges[key].Add(range);
}

// The graph as the optimizers of `declared` see it: each parameter with what becomes its gradient.
std::vector<std::pair<std::string, ir::Value>> GradientsOf(const ir::Graph& graph,
                                                           const Declaration& declared) {
  std::vector<std::pair<std::string, ir::Value>> gradients;
  for (const OptimizerEntry& entry : declared.optimizers()) {
    // Where ranks have some of the gradients each, those of this one; the others are empty.
    const ir::Node* const squares = graph.FindNode(entry.name + ".grad_squares");
    const ir::Node* const stats =
        squares != nullptr ? squares : graph.FindNode(entry.name + ".grad_stats");
    for (size_t i = 0; i < entry.parameter_names.size(); ++i) {
      const std::string& parameter = entry.parameter_names[i];
      const auto port = static_cast<int>(i) + 1;
      const ir::Node* const sum =
          graph.FindCommit(optim::SlotVariable(entry.name, parameter, optim::kGradSumSlot));
      if (sum != nullptr) {
        gradients.emplace_back(parameter, sum->input(0));
      } else if (stats != nullptr && port < stats->num_inputs() &&
                 (squares == nullptr || stats->input_type(port).num_elements() > 0)) {
        gradients.emplace_back(parameter, stats->input(port));
      }
    }
  }
  return gradients;
}

GradientFit FitOf(const std::string& parameter, const amp::Range& scaled, double scale) {
  GradientFit fit;
  fit.parameter = parameter;
  fit.largest = scaled.largest / scale;
  fit.elements = scaled.elements;
  fit.zeros = scaled.zeros;
  fit.non_finite = scaled.non_finite;
  const int64_t whole = scaled.elements - scaled.zeros;
  fit.vanishing_share = Share(scaled.underflows, whole);
  fit.subnormal_share = Share(scaled.subnormals, whole);
  return fit;
}

// The largest of the f16 values that carry a scale.
amp::Range LargestOf(const ir::Graph& graph, const runtime::ScaledValues& scaled,
                     const SeenRanges& ranges) {
  amp::Range all;
  for (const auto& node : graph.nodes()) {
    for (int i = 0; i < node->num_outputs(); ++i) {
      if (node->output_type(i).dtype != DType::kF16 || !scaled.Has(node->output(i))) continue;
      all.Add(ranges.at({node->id(), i}));
    }
  }
  return all;
}

}  // namespace

runtime::ReplayOptions Graph::Impl::ReplayOptionsFor(const CompiledStep& step) const {
  runtime::ReplayOptions options;
  options.device = device;
  options.seed = step.config.seed;
  const RunCounts& counts = under_way.counts();
  options.run_count = step.training ? counts.training : counts.evaluation;
  const auto skipped = [](const OptimizerEntry& o) { return !o.last.applied; };
  const bool last_is_skipped =
      step.training && counts.micro_batches == 0 && counts.training >= step.micro_batches &&
      std::any_of(declared.optimizers().begin(), declared.optimizers().end(), skipped);
  for (const ScalerEntry& entry : declared.scalers()) {
    if (entry.scale == nullptr || !entry.scale->materialised()) continue;
    const std::string name = entry.name + ".scale";
    const bool known = last_is_skipped && !std::isnan(entry.step_scale);
    options.scalars[name] = known ? entry.step_scale : state.Scalar(name, 1);
  }
  // Of a skipped step nothing has moved but the scale and the count.
  if (last_is_skipped) options.run_count -= step.micro_batches;
  return options;
}

absl::Status Graph::Impl::ReplayMicroBatches(const CompiledStep& step, const ir::Graph& lowered,
                                             runtime::ReplayOptions options,
                                             absl::Span<const Tensor> in,
                                             absl::FunctionRef<bool(const SeenRanges&)> go_on) {
  for (size_t batch = 0; batch < step.micro_batches; ++batch) {
    std::vector<const void*> inputs;
    for (size_t i = 0; i < in.size(); ++i) {
      const size_t bytes = in[i].shape().rank() == 0 ? 0 : in[i].num_bytes() / step.micro_batches;
      inputs.push_back(static_cast<const char*>(in[i].raw()) + batch * bytes);
    }
    HT_ASSIGN_OR_RETURN(const SeenRanges ranges,
                        runtime::Replay(lowered, options, declared.store(), inputs));
    if (!go_on(ranges)) break;
    ++options.run_count;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::optional<NonFiniteNode>> Graph::Impl::FirstNonFiniteNode(
    const CompiledStep& step, absl::Span<const Tensor> in) {
  under_way.Settle();
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> unfused, step.Unfused(device));
  const ir::Graph& lowered = *unfused;
  const runtime::ReplayOptions options = ReplayOptionsFor(step);
  std::optional<NonFiniteNode> found;
  HT_RETURN_IF_ERROR(ReplayMicroBatches(step, lowered, options, in, [&](const SeenRanges& ranges) {
    found = runtime::FindNonFinite(lowered, ranges);
    return !found.has_value();
  }));
  if (!found.has_value()) return found;
  for (const ScalerEntry& entry : declared.scalers()) {
    const auto scale = options.scalars.find(entry.name + ".scale");
    if (scale != options.scalars.end()) found->scales[entry.name] = scale->second;
  }
  return found;
}

absl::Status Graph::Impl::Explain(const absl::Status& error, const CompiledStep& step,
                                  absl::Span<const Tensor> in) {
  const auto found = FirstNonFiniteNode(step, in);
  const std::string what =
      !found.ok() ? "no node, since running the step again failed: " + Message(found.status())
      : found->has_value() ? runtime::ToString(**found)
                           : "no node, this call's inputs alone give finite gradients";
  return absl::Status(error.code(), Concat(Message(error), "; first non-finite value: ", what));
}

absl::StatusOr<GradientReport> Graph::Impl::MeasureGradients(const ScalerEntry& scaler,
                                                             const CompiledStep& step,
                                                             absl::Span<const Tensor> in) {
  under_way.Settle();
  const std::string variable = scaler.name + ".scale";
  GradientReport report;
  report.scale = state.Scalar(variable, 1);

  // In f32, with the scale all the same.
  std::unique_ptr<ir::Graph> wide = step.traced->Clone();
  wide->Remove(passes::FindMarkers(*wide, "amp"));
  for (ir::Node* marker : passes::FindMarkers(*wide, "scaler")) {
    marker->mutable_attrs().Set("automatic", false);
  }
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Target> target, runtime::TargetOf(device));
  passes::ForbidFusion(*wide);
  HT_RETURN_IF_ERROR(runtime::Lower(*wide, *target, {}, nullptr, step.config.own_passes()));
  runtime::ReplayOptions options = ReplayOptionsFor(step);
  options.scalars[variable] = report.scale;
  SeenRanges ranges;
  const auto add = [&ranges](const SeenRanges& more) {
    AddAll(more, ranges);
    return true;
  };
  HT_RETURN_IF_ERROR(ReplayMicroBatches(step, *wide, options, in, add));
  const runtime::ScaledValues in_f32(*wide, variable);
  for (const auto& [parameter, gradient] : GradientsOf(*wide, declared)) {
    amp::Range scaled;
    for (const ir::Value& value : in_f32.LastBefore(gradient)) {
      scaled.Add(ranges.at({value.node->id(), value.index}));
    }
    if (scaled.elements > 0) report.parameters.push_back(FitOf(parameter, scaled, report.scale));
  }

  // In the step as it is, at a scale low enough for it.
  constexpr double kTarget = 32752;  // half of 65504
  constexpr double kLower = 0x1p-12, kLowest = 0x1p-60;
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Graph> unfused, step.Unfused(device));
  const ir::Graph& lowered = *unfused;
  const runtime::ScaledValues in_step(lowered, variable);
  for (double scale = report.scale; scale >= kLowest; scale *= kLower) {
    options.scalars[variable] = scale;
    ranges.clear();
    HT_RETURN_IF_ERROR(ReplayMicroBatches(step, lowered, options, in, add));
    const amp::Range seen = LargestOf(lowered, in_step, ranges);
    if (!seen.is_finite()) continue;
    if (seen.largest > 0) {
      report.suggested_scale = std::ldexp(1, std::ilogb(kTarget * scale / seen.largest));
    }
    break;
  }
  return report;
}

}  // namespace halftone::nn
