#include "halftone/graph/runtime/nonfinite_node.h"

#include "halftone/core/strings.h"

namespace halftone::runtime {
namespace {

// "3 of 4 elements are not finite (1 NaN)"
std::string Count(const amp::Range& range) {
  const std::string text =
      Concat(range.non_finite, " of ", range.elements,
             range.elements == 1 ? " element is" : " elements are", " not finite");
  return range.nans == 0 ? text : Concat(text, " (", range.nans, " NaN)");
}

std::string Magnitudes(const amp::Range& range) {
  if (range.non_finite > 0) return Count(range);
  if (range.zeros == range.elements) return "all 0";
  return Concat("magnitudes ", range.zeros > 0 ? 0 : range.smallest, " to ", range.largest);
}

}  // namespace

std::string ToString(const NonFiniteNode& node) {
  using Kind = NonFiniteNode::Kind;
  if (node.kind != Kind::kComputed) {
    const char* const what = node.kind == Kind::kInput      ? "input "
                             : node.kind == Kind::kVariable ? "variable "
                                                            : "constant %";
    return Concat(what, node.node, " ", node.type, ": ", Count(node.range),
                  " in what the step was given");
  }
  std::string text =
      Concat("%", node.node, node.output == 0 ? "" : Concat("#", node.output), " (", node.op,
             node.module.empty() ? "" : ", " + node.module, ") ", node.type);
  if (!node.location.empty()) text += " at " + node.location;
  text += ": " + Count(node.range);
  if (!node.gradient_of.empty()) text += Concat("; gradient of %", node.gradient_of);
  if (!node.why.empty()) text += "; " + node.why;
  for (const NonFiniteNode::Operand& operand : node.operands) {
    if (operand.range.elements == 0) continue;
    text += Concat("; ", operand.value, " ", operand.type, ": ", Magnitudes(operand.range));
  }
  for (const auto& [scaler, scale] : node.scales) text += Concat("; ", scaler, " at ", scale);
  return text;
}

}  // namespace halftone::runtime
