#include "halftone/benchmarks/support/kernel_case.h"

#include "absl/strings/str_replace.h"
#include "halftone/core/philox.h"
#include "halftone/graph/ir/text.h"

namespace halftone::benchmarks {
namespace {

constexpr int kFirstStatistic = 3;

// One more than the largest value that an integer operand may have.
uint64_t IntegerBound(const ir::Node& node, int port) {
  return port == 1 && node.op().can_fault() ? static_cast<uint64_t>(node.op().index_extent(node))
                                            : 1;
}

double CentreOfWindow(const ir::Node& node) {
  if (node.attrs().Find("kernel") == nullptr) return 0;
  const auto kernel = node.attrs().GetInts("kernel");
  return static_cast<double>(kernel[0] / 2 * kernel[1] + kernel[1] / 2);
}

}  // namespace

absl::StatusOr<std::unique_ptr<ir::Graph>> ParseKernelCase(const std::string& inputs,
                                                           const std::string& nodes, DType dtype) {
  const std::string text = Concat("graph @case(", inputs, ") {\n  ", nodes, "\n}\n");
  return ir::Parse(absl::StrReplaceAll(text, {{" T[", Concat(" ", Name(dtype), "[")}}));
}

Tensor OperandValues(const ir::Node& node, int port, int64_t count) {
  const ir::ValueType& type = node.input_type(port);
  const Shape shape{count};
  if (type.shape.rank() == 0) {
    return Tensor::Full(type.dtype, shape, IsFloat(type.dtype) ? 0x1p-10 : 1);
  }
  PhiloxStream stream(0, static_cast<uint64_t>(port));
  if (IsFloat(type.dtype)) {
    Tensor uniform = Tensor::Empty(DType::kF32, shape);
    const float low = port < kFirstStatistic ? -0.5F : 0.5F;
    for (int64_t i = 0; i < count; ++i) uniform.data<float>()[i] = stream.Uniform() + low;
    return uniform.To(type.dtype);
  }
  const uint64_t bound = type.dtype == DType::kBool ? 2 : IntegerBound(node, port);
  if (bound == 1) return Tensor::Full(type.dtype, shape, CentreOfWindow(node));
  Tensor values = Tensor::Empty(type.dtype, shape);
  for (int64_t i = 0; i < count; ++i) values.set(i, static_cast<double>(stream.Below(bound)));
  return values;
}

}  // namespace halftone::benchmarks
