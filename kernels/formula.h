// What the kernels of an elementwise op ask of its node: which formula, and the numbers in it.
#pragma once

#include <array>
#include <string>
#include <variant>

#include "halftone/graph/ir/graph.h"

namespace halftone::kernels {

// "gelu:tanh" for an op with variants, else the op's name.
inline std::string FormulaOf(const ir::OpRecord& op, const ir::Attributes& attrs) {
  const ir::AttrValue* variant = attrs.Find("approximate");
  return variant == nullptr ? op.name : op.name + ":" + std::get<std::string>(*variant);
}
inline std::string FormulaOf(const ir::Node& node) { return FormulaOf(node.op(), node.attrs()); }

// The members of a functor, in the order of the record.
using FormulaNumbers = std::array<double, 2>;
inline FormulaNumbers NumbersOf(const ir::OpRecord& op, const ir::Attributes& attrs) {
  FormulaNumbers numbers{};
  size_t count = 0;
  for (const ir::AttrSpec& attr : op.attrs) {
    if (attr.type == ir::AttrType::kFloat) numbers.at(count++) = attrs.GetFloat(attr.name);
  }
  return numbers;
}

}  // namespace halftone::kernels
