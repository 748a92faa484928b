#include "halftone/passes/amp/value_ranges.h"

#include <algorithm>
#include <cmath>

#include "halftone/graph/ir/text_format.h"
#include "halftone/passes/amp/amp_graph.h"

namespace halftone::passes {
namespace {

using ir::ValueRange;

constexpr double kF16Max = 65504;

double MaxOf(DType low) {
  return low == DType::kF16 ? kF16Max : 3.3895313892515355e38;  // (2 - 2^-7) 2^127
}
// From here on, nearest even gives infinity.
double OverflowOf(DType low) { return low == DType::kF16 ? 65520 : 3.3961775292304957e38; }

// Of the finite elements: an infinity is what was meant.
ValueRange RangeOfConstant(const Tensor& value) {
  ValueRange range{0, 0, 0, true};
  bool first = true;
  const int64_t n = ir::IsSplat(value) ? 1 : value.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    const double x = value.at(i);
    if (!std::isfinite(x)) continue;
    range.lo = first ? x : std::min(range.lo, x);
    range.hi = first ? x : std::max(range.hi, x);
    range.whole &= x == std::floor(x);
    first = false;
  }
  return range;
}

// What the dtype alone says.
ValueRange RangeOfType(DType dtype) {
  if (dtype == DType::kBool) return {0, 1, 0, true};
  if (dtype == DType::kU8) return {0, 255, 0, true};
  if (IsLow(dtype)) return ValueRange::Between(-kF16Max, kF16Max);
  return ValueRange::Unknown();
}

// What of `range` lies in `bounds`.
ValueRange Within(ValueRange range, const ValueRange& bounds) {
  range.lo = std::clamp(range.lo, bounds.lo, bounds.hi);
  range.hi = std::clamp(range.hi, bounds.lo, bounds.hi);
  range.whole |= bounds.whole;
  return range;
}

// Of an op whose results are taken from its float operands.
ValueRange RangeOfOperands(const ir::Node& node, const std::vector<ValueRange>& inputs) {
  std::optional<ValueRange> range;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (!IsFloat(node.input_type(i).dtype)) continue;
    const ValueRange& input = inputs[static_cast<size_t>(i)];
    range = range ? Either(*range, input) : input;
  }
  return range.value_or(ValueRange::Unknown());
}

ValueRange RangeOfResult(const ir::Node& node, int output, const std::vector<ValueRange>& inputs) {
  if (IsConstant(node)) return RangeOfConstant(node.attrs().Get<Tensor>("value"));
  if (node.num_inputs() == 0) return ValueRange::Unknown();
  if (node.op().range) return output == 0 ? node.op().range(node, inputs) : ValueRange::Unknown();
  if (node.op().amp.f16 != ir::AmpClass::kClear) return ValueRange::Unknown();
  return RangeOfOperands(node, inputs);
}

// "[-65504, 0]", without a negative zero.
std::string Ends(const ValueRange& range) {
  return Concat("[", range.lo + 0.0, ", ", range.hi + 0.0, "]");
}

}  // namespace

ValueRanges::ValueRanges(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    const std::vector<ValueRange> inputs = OfInputs(*node);
    std::vector<ValueRange>& outputs = ranges_[node->id()];
    for (int i = 0; i < node->num_outputs(); ++i) {
      ValueRange range = RangeOfResult(*node, i, inputs);
      const ValueRange of_type = RangeOfType(LogicalDType(node->output(i)));
      if (of_type.is_closed()) range = range.is_closed() ? Within(range, of_type) : of_type;
      outputs.push_back(range);
    }
  }
}

const ValueRange& ValueRanges::of(ir::Value value) const {
  return ranges_.at(value.node->id())[static_cast<size_t>(value.index)];
}

std::vector<ValueRange> ValueRanges::OfInputs(const ir::Node& node) const {
  std::vector<ValueRange> inputs;
  for (ir::Value input : node.inputs()) inputs.push_back(of(input));
  return inputs;
}

std::optional<std::string> WhyBeyond(const ValueRange& range, DType low) {
  if (range.magnitude() < OverflowOf(low)) return std::nullopt;
  return Concat(Ends(range), range.is_closed() ? "" : " and a value of unknown size", " may leave ",
                Name(low));
}

std::optional<std::string> WhyLeaves(const ValueRange& range, DType low) {
  if (range.is_closed()) return WhyBeyond(range, low);
  if (range.magnitude() > MaxOf(low) / 2) {
    return Concat(Ends(range), " and a value of unknown size may leave ", Name(low));
  }
  if (range.unknown <= std::sqrt(MaxOf(low))) return std::nullopt;
  return Concat("a value of unknown size times ", range.unknown, " may leave ", Name(low));
}

}  // namespace halftone::passes
