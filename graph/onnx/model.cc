#include "halftone/graph/onnx/model.h"

#include <array>

#include "halftone/graph/ir/text_format.h"

namespace halftone::onnx {
namespace {

struct TypeNumber {
  DType dtype;
  int number;
};
constexpr std::array<TypeNumber, kNumDTypes> kTypeNumbers = {{{DType::kF32, 1},
                                                              {DType::kU8, 2},
                                                              {DType::kI32, 6},
                                                              {DType::kI64, 7},
                                                              {DType::kBool, 9},
                                                              {DType::kF16, 10},
                                                              {DType::kF64, 11},
                                                              {DType::kBF16, 16},
                                                              {DType::kF8E4M3, 17},
                                                              {DType::kF8E5M2, 19}}};

// By their numbers.
constexpr std::array kTypeNames = {
    "undefined",      "float",    "uint8",        "int8",           "uint16",
    "int16",          "int32",    "int64",        "string",         "bool",
    "float16",        "double",   "uint32",       "uint64",         "complex64",
    "complex128",     "bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2",
    "float8e5m2fnuz", "uint4",    "int4",         "float4e2m1",     "float8e8m0",
    "uint2",          "int2"};

}  // namespace

int DTypeNumber(DType dtype) {
  for (const TypeNumber& row : kTypeNumbers) {
    if (row.dtype == dtype) return row.number;
  }
  return 0;
}

std::optional<DType> DTypeFromNumber(int64_t number) {
  for (const TypeNumber& row : kTypeNumbers) {
    if (row.number == number) return row.dtype;
  }
  return std::nullopt;
}

std::string DTypeNumberName(int64_t number) {
  if (number >= 0 && number < static_cast<int64_t>(kTypeNames.size())) return kTypeNames[number];
  return Concat("type ", number);
}

std::string Node::Label() const {
  const std::string& shown = name.empty() && !outputs.empty() ? outputs[0] : name;
  return Concat("node ", ir::Quote(shown.substr(0, 80)), " (", op_type.substr(0, 80), ")");
}

}  // namespace halftone::onnx
