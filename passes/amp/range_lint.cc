#include "halftone/passes/amp/range_lint.h"

#include <cmath>

#include "halftone/graph/ir/text_format.h"

namespace halftone::passes {
namespace {

double RoundTo(DType low, double x) {
  uint16_t bits = 0;
  StoreDouble(&bits, low, 0, x);
  return LoadDouble(&bits, low, 0);
}

// How many elements there are to look at: one of a splat.
int64_t DifferentElements(const Tensor& value) {
  return ir::IsSplat(value) ? 1 : value.num_elements();
}

}  // namespace

std::optional<RangeProblem> RangeProblemOf(const ir::Node& constant, DType low) {
  const Tensor& value = constant.attrs().Get<Tensor>("value");
  bool some_nonzero = false, some_survive = false;
  double vanishing = 0;
  const int64_t n = DifferentElements(value);
  for (int64_t i = 0; i < n; ++i) {
    const double x = value.at(i);
    const double y = RoundTo(low, x);
    if (std::isfinite(x) && std::isinf(y)) {
      return RangeProblem{Concat(constant.name(), " = ", x, " overflows ", Name(low)), true};
    }
    if (x == 0) continue;
    if (!some_nonzero) vanishing = x;
    some_nonzero = true;
    some_survive |= y != 0;
  }
  if (!some_nonzero || some_survive) return std::nullopt;
  return RangeProblem{Concat(constant.name(), " = ", vanishing, " vanishes in ", Name(low)), false};
}

namespace {

std::optional<RangeProblem> ProblemOfConstants(const AmpGraph& graph, int v, DType low) {
  for (int producer : graph.MainProducers(v)) {
    if (producer < 0 || !IsConstant(*graph[producer].node)) continue;
    std::optional<RangeProblem> problem = RangeProblemOf(*graph[producer].node, low);
    if (!problem) continue;
    if (!problem->overflows && graph[v].choice.amp_class == ir::AmpClass::kAllow) continue;
    return problem;
  }
  return std::nullopt;
}

// Of what an allowed op reads, and of what nobody decides about; others are kept f32 by the node
// that makes the value.
std::optional<RangeProblem> ProblemOfOperands(const AmpGraph& graph, int v,
                                              const ValueRanges& ranges, DType low) {
  const AmpVertex& vertex = graph[v];
  for (int port = 0; port < vertex.node->num_inputs(); ++port) {
    const int producer = vertex.producers[static_cast<size_t>(port)];
    if (producer == AmpGraph::kNotMain) continue;
    const bool decided = producer >= 0 && graph[producer].role == AmpRole::kPaintable;
    if (decided && vertex.choice.amp_class != ir::AmpClass::kAllow) continue;
    const ir::Value value = LookThroughAmpCasts(vertex.node->input(port));
    if (auto why = WhyBeyond(ranges.of(value), low)) {
      return RangeProblem{Concat(value.node->name(), ": ", *why), true};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<RangeProblem> RangeProblemOfVertex(const AmpGraph& graph, int v,
                                                 const ValueRanges& ranges, DType low) {
  if (auto problem = ProblemOfConstants(graph, v, low)) return problem;
  if (auto problem = ProblemOfOperands(graph, v, ranges, low)) return problem;
  const AmpVertex& vertex = graph[v];
  if (vertex.choice.amp_class == ir::AmpClass::kAllow || !IsMainOutput(*vertex.node, 0)) {
    return std::nullopt;
  }
  // What leaves the range already is kept f32 by the node that makes it, and v with it.
  for (int port = 0; port < vertex.node->num_inputs(); ++port) {
    const int producer = vertex.producers[static_cast<size_t>(port)];
    if (producer < 0 || graph[producer].role != AmpRole::kPaintable) continue;
    if (graph[producer].choice.amp_class == ir::AmpClass::kDeny) continue;
    if (WhyLeaves(ranges.of(LookThroughAmpCasts(vertex.node->input(port))), low)) {
      return std::nullopt;
    }
  }
  auto why = WhyLeaves(ranges.of(vertex.node->output()), low);
  return why ? std::make_optional(RangeProblem{*std::move(why), true}) : std::nullopt;
}

bool IsExactIn(const ir::Node& constant, DType low) {
  const Tensor& value = constant.attrs().Get<Tensor>("value");
  const int64_t n = DifferentElements(value);
  for (int64_t i = 0; i < n; ++i) {
    const double x = value.at(i);
    if (RoundTo(low, x) != x && !std::isnan(x)) return false;
  }
  return true;
}

}  // namespace halftone::passes
