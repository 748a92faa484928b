// An ONNX model as plain data, between the file (parse.h, serialize.h) and the graph (import.h,
// export.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "halftone/graph/ir/attribute.h"

namespace halftone::onnx {

// What export writes: operators as opset 17 has them, in the form that came with it.
inline constexpr int64_t kWrittenOpset = 17;
inline constexpr int64_t kWrittenIrVersion = 8;
// What import reads.
inline constexpr int64_t kOldestOpset = 7;
inline constexpr int64_t kNewestOpset = 28;

// An extent, or the name of one that the model leaves open; both absent: open without a name.
struct Dim {
  std::optional<int64_t> extent;
  std::string name;
};

struct ValueInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::optional<std::vector<Dim>> dims;  // absent: not even the rank is known
};

struct NamedTensor {
  std::string name;
  Tensor value;
};

struct Node {
  std::string op_type, name, domain;
  std::vector<std::string> inputs, outputs;  // names of values; "": not given
  // Of the kinds int, float, string, tensor, ints, floats and strings.
  ir::Attributes attributes;

  // `node "conv1" (Conv)`, by the first output where it has no name.
  std::string Label() const;
};

struct Model {
  int64_t opset = kWrittenOpset;  // of the standard operators
  std::string name;
  std::vector<ValueInfo> inputs, outputs;
  std::vector<NamedTensor> initializers;
  std::vector<Node> nodes;
};

// ONNX's number of a dtype, and back; nullopt where no tensor of ours has the type. Its name is in
// ONNX's words: "int8".
int DTypeNumber(DType dtype);
std::optional<DType> DTypeFromNumber(int64_t number);
std::string DTypeNumberName(int64_t number);

}  // namespace halftone::onnx
