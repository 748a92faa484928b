#include "halftone/tools/support/tensor_text.h"

#include "halftone/graph/ir/number_text.h"

namespace halftone::tools {
namespace {

constexpr int64_t kMaxShown = 1000;
constexpr int64_t kEdge = 3;

class Formatter {
 public:
  explicit Formatter(const Tensor& tensor)
      : tensor_(tensor), brief_(tensor.num_elements() > kMaxShown) {}

  std::string Run() {
    Append(0, 0);
    return text_;
  }

 private:
  // The part below the first `axis` indices; `offset` counts elements.
  void Append(int axis, int64_t offset) {
    const Shape& shape = tensor_.shape();
    if (axis == shape.rank()) {
      text_ += ir::FormatElement(tensor_.raw(), tensor_.dtype(), offset);
      return;
    }
    const int64_t extent = shape[axis];
    const int64_t stride = shape.strides()[static_cast<size_t>(axis)];
    const bool innermost = axis + 1 == shape.rank();
    const std::string between =
        innermost ? ", " : ",\n" + std::string(static_cast<size_t>(axis) + 1, ' ');
    text_ += '[';
    for (int64_t i = 0; i < extent; ++i) {
      if (i > 0) text_ += between;
      if (brief_ && i == kEdge && extent > 2 * kEdge) {
        text_ += "..." + between;
        i = extent - kEdge;
      }
      Append(axis + 1, offset + i * stride);
    }
    text_ += ']';
  }

  const Tensor& tensor_;
  const bool brief_;
  std::string text_;
};

}  // namespace

std::string FormatValues(const Tensor& tensor) { return Formatter(tensor).Run(); }

}  // namespace halftone::tools
