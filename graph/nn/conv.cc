#include "halftone/graph/nn/conv.h"

#include <algorithm>
#include <iterator>

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/module_util.h"

namespace halftone::nn {
namespace internal {

ConvLayer::ConvLayer(const char* name, Extents extents, bool has_bias, bool transposed)
    : name_(name), extents_(std::move(extents)) {
  const auto& [in_channels, out_channels, kernel, groups] = extents_;
  Fail(CheckPositive(name, {{"in_channels", in_channels}, {"out_channels", out_channels}}));
  static constexpr const char* kAxes[] = {"kernel depth", "kernel height", "kernel width"};
  for (size_t i = 0; i < kernel.size(); ++i) {
    const char* const axis = kernel.size() == 1 ? "kernel_size" : kAxes[3 - kernel.size() + i];
    Fail(CheckPositive(name, {{axis, kernel[i]}}));
  }
  Fail(CheckPositive(name, {{"groups", groups}}));
  if (!status().ok()) return;
  if (in_channels % groups != 0 || out_channels % groups != 0) {
    Fail(InvalidArgument(name, ": groups is ", groups, "; expected a divisor of ", in_channels,
                         " and ", out_channels, " channels"));
    return;
  }
  std::vector<int64_t> extents_of_weight = {transposed ? in_channels : out_channels,
                                            (transposed ? out_channels : in_channels) / groups};
  extents_of_weight.insert(extents_of_weight.end(), kernel.begin(), kernel.end());
  const absl::StatusOr<Shape> shape = Shape::Make(extents_of_weight);
  if (!shape.ok()) {
    Fail(shape.status());
    return;
  }
  const ir::Initializer init = UniformOfFanIn(shape->num_elements() / (*shape)[0]);
  weight = Parameter(*shape, init);
  register_parameter("weight", weight);
  if (has_bias) bias = Parameter(Shape{out_channels}, init);
  register_parameter("bias", bias);
}

std::vector<int64_t> ConvLayer::FillPadding(const std::vector<int64_t>& padding,
                                            const std::string& mode) {
  static constexpr const char* kModes[] = {"zeros", "reflect", "replicate", "circular"};
  if (std::find(std::begin(kModes), std::end(kModes), mode) == std::end(kModes)) {
    Fail(InvalidArgument(name_, ": padding_mode is \"", mode,
                         "\"; expected zeros, reflect, replicate or circular"));
    return padding;
  }
  if (mode == "zeros") return padding;
  padding_mode_ = mode;
  for (size_t axis = padding.size(); axis-- > 0;) {
    filled_.insert(filled_.end(), {padding[axis], padding[axis]});
  }
  return std::vector<int64_t>(padding.size(), 0);
}

Value ConvLayer::Padded(const Value& x, Loc loc) const {
  return filled_.empty() ? x : pad(x, filled_, padding_mode_, 0, loc);
}

std::string ConvLayer::description() const {
  std::string kernel;
  for (const int64_t extent : extents_.kernel) kernel += Concat(kernel.empty() ? "" : ", ", extent);
  return Concat(name_, "(", extents_.in_channels, ", ", extents_.out_channels, ", (", kernel, "))");
}

}  // namespace internal

Conv1d::Conv1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size,
               const Conv1dLayerOptions& options)
    : ConvLayer("Conv1d", {in_channels, out_channels, {kernel_size}, options.groups}, options.bias,
                /*transposed=*/false),
      options_{options.stride, options.padding, options.dilation, options.groups} {
  const std::vector<int64_t> left = FillPadding({options.padding}, options.padding_mode);
  options_.padding = left[0];
}

Value Conv1d::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  return conv1d(Padded(x, loc), Value(weight, loc), {bias, loc}, options_, loc);
}

Conv2d::Conv2d(int64_t in_channels, int64_t out_channels, Size2d kernel_size,
               const Conv2dLayerOptions& options)
    : ConvLayer("Conv2d", {in_channels, out_channels, kernel_size.ints(), options.groups},
                options.bias, /*transposed=*/false),
      options_{options.stride, options.padding, options.dilation, options.groups} {
  const std::vector<int64_t> left = FillPadding(options.padding.ints(), options.padding_mode);
  options_.padding = {left[0], left[1]};
}

Value Conv2d::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  return conv2d(Padded(x, loc), Value(weight, loc), {bias, loc}, options_, loc);
}

Conv3d::Conv3d(int64_t in_channels, int64_t out_channels, Size3d kernel_size,
               const Conv3dLayerOptions& options)
    : ConvLayer("Conv3d", {in_channels, out_channels, kernel_size.ints(), options.groups},
                options.bias, /*transposed=*/false),
      options_{options.stride, options.padding, options.dilation, options.groups} {
  const std::vector<int64_t> left = FillPadding(options.padding.ints(), options.padding_mode);
  options_.padding = {left[0], left[1], left[2]};
}

Value Conv3d::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  return conv3d(Padded(x, loc), Value(weight, loc), {bias, loc}, options_, loc);
}

ConvTranspose1d::ConvTranspose1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size,
                                 const ConvTranspose1dLayerOptions& options)
    : ConvLayer("ConvTranspose1d", {in_channels, out_channels, {kernel_size}, options.groups},
                options.bias, /*transposed=*/true),
      options_{options.stride, options.padding, options.output_padding, options.groups,
               options.dilation} {}

Value ConvTranspose1d::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  return conv_transpose1d(x, Value(weight, loc), {bias, loc}, options_, loc);
}

ConvTranspose2d::ConvTranspose2d(int64_t in_channels, int64_t out_channels, Size2d kernel_size,
                                 const ConvTranspose2dLayerOptions& options)
    : ConvLayer("ConvTranspose2d", {in_channels, out_channels, kernel_size.ints(), options.groups},
                options.bias, /*transposed=*/true),
      options_{options.stride, options.padding, options.output_padding, options.groups,
               options.dilation} {}

Value ConvTranspose2d::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  return conv_transpose2d(x, Value(weight, loc), {bias, loc}, options_, loc);
}

ConvTranspose3d::ConvTranspose3d(int64_t in_channels, int64_t out_channels, Size3d kernel_size,
                                 const ConvTranspose3dLayerOptions& options)
    : ConvLayer("ConvTranspose3d", {in_channels, out_channels, kernel_size.ints(), options.groups},
                options.bias, /*transposed=*/true),
      options_{options.stride, options.padding, options.output_padding, options.groups,
               options.dilation} {}

Value ConvTranspose3d::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  return conv_transpose3d(x, Value(weight, loc), {bias, loc}, options_, loc);
}

}  // namespace halftone::nn
