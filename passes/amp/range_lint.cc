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

std::optional<RangeProblem> RangeProblemOfReader(const AmpGraph& graph, int v, DType low) {
  for (int producer : graph.MainProducers(v)) {
    if (producer < 0 || !IsConstant(*graph[producer].node)) continue;
    std::optional<RangeProblem> problem = RangeProblemOf(*graph[producer].node, low);
    if (!problem) continue;
    if (!problem->overflows && graph[v].choice.amp_class == ir::AmpClass::kAllow) continue;
    return problem;
  }
  return std::nullopt;
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
