// The geometry of sliding windows: what convolution and pooling, their gradients, and their kernels
// share.
#pragma once

#include <absl/container/inlined_vector.h>

#include "halftone/graph/ops/support/nn.h"

namespace halftone::ops {

// One axis of a sliding window: output position o, offset k read input o*stride - padding +
// k*dilation.
struct WindowAxis {
  int64_t input = 0, output = 0;
  int64_t kernel = 1, stride = 1, padding = 0, dilation = 1;

  // Input position; outside [0, input) it lies in the padding.
  int64_t Position(int64_t o, int64_t k) const { return o * stride - padding + k * dilation; }
  // Extent of the dilated kernel.
  int64_t Span() const { return (kernel - 1) * dilation + 1; }
};

// Fills in `output`: floor((input + 2 padding - span) / stride) + 1. With ceil_mode the division
// rounds up, except that the last window must start inside the input or the left padding. Less than
// 1 if the kernel does not fit. Source:
// https://pytorch.org/docs/stable/generated/torch.nn.MaxPool2d.html
void SetOutput(WindowAxis& axis, bool ceil_mode);

// The numbers of spatial axes that there are convolutions of: conv2d and conv3d, each with its
// gradients. Convolutions along one axis are conv2d over rows of height 1.
inline constexpr int kConvDims[] = {2, 3};
// "conv2d" or, with a suffix, "conv2d_grad_input".
std::string ConvOp(int dims, const char* suffix = "");

// x [n, c, h.input, w.input] -> y [n, o, h.output, w.output]; weights [o, c / groups, h.kernel,
// w.kernel]. Of conv3d d comes before h; of conv2d it has the extent 1, so that what walks over
// three axes serves both.
struct ConvGeometry {
  int dims = 2;
  int64_t n = 0, c = 0, o = 0, groups = 1;
  WindowAxis d, h, w;

  Shape x_shape() const;
  Shape w_shape() const;
  Shape y_shape() const;
  // The spatial axes: h and w, or d, h and w.
  absl::InlinedVector<const WindowAxis*, 3> axes() const;
  // Multiplications and additions of any of the three products.
  double flops() const;
};

// From attributes and shapes that inference has accepted.
ConvGeometry ConvGeometryOf(const ir::Attributes& attrs, const Shape& x, const Shape& w);
// Of a node of op conv2d or conv3d, or of the gradient of one in its input or weight.
ConvGeometry ConvGeometryOf(const ir::Node& node);

// x [n, c, h.input, w.input] -> y [n, c, h.output, w.output].
struct PoolGeometry {
  int64_t n = 0, c = 0;
  WindowAxis h, w;

  Shape x_shape() const { return {n, c, h.input, w.input}; }
  Shape y_shape() const { return {n, c, h.output, w.output}; }
};

// From attributes and the shape of x that inference has accepted.
PoolGeometry PoolGeometryOf(const ir::Attributes& attrs, const Shape& x);
// Of a node of op max_pool2d, avg_pool2d or one of their gradients.
PoolGeometry PoolGeometryOf(const ir::Node& node);

// Holds every offset kh*kw of the window.
inline DType MaxPoolIndexDType(const PoolGeometry& g) {
  return g.h.kernel * g.w.kernel <= 256 ? DType::kU8 : DType::kI32;
}

// How many values an average pooling divides by, PyTorch's rule: with count_include_pad the part of
// the window inside input and padding (a window of ceil_mode may reach beyond), else the part
// inside the input.
int64_t AveragePoolDivisor(const PoolGeometry& g, int64_t oh, int64_t ow, bool count_include_pad);

// Inference of the geometry. `x` and `w` are the operands' shapes, wherever they come from (an
// input, or the `shape` attribute of a gradient). Errors: attributes out of range, kernel does not
// fit.
absl::StatusOr<ConvGeometry> InferConvGeometry(const ir::InferContext& ctx, const Shape& x,
                                               const Shape& w);
absl::StatusOr<PoolGeometry> InferPoolGeometry(const ir::InferContext& ctx, const Shape& x);

// How records of one number of spatial axes name the op and its shapes.
struct ConvNames {
  explicit ConvNames(int dims);
  std::string op;       // "conv2d"
  std::string x, w, y;  // "[N,C,H,W]", "[O,C/groups,kh,kw]", "[N,O,OH,OW]"
};

// Declarations of the attributes.
std::vector<ir::AttrSpec> ConvAttrs(int dims);
std::vector<ir::AttrSpec> PoolAttrs();
// The values of ConvAttrs, for passing on to a gradient op, with the `shape` it makes.
ir::Attributes ConvAttrsOf(const ir::Attributes& attrs, const Shape* shape);

}  // namespace halftone::ops
