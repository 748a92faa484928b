#include "halftone/graph/nn/norm.h"

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/module_util.h"
#include "halftone/graph/nn/trace.h"

namespace halftone::nn {
namespace {

const ir::Initializer kZeros{ir::Initializer::Kind::kConstant, 0, 0};
const ir::Initializer kOnes{ir::Initializer::Kind::kConstant, 1, 0};

// The parameter, or where the layer has none a constant in its place.
Value OrConstant(const Parameter& parameter, const Shape& shape, double value, Loc loc) {
  internal::Trace* trace = internal::Trace::Current();
  if (parameter.defined() || trace == nullptr) return Value(parameter, loc);
  trace->At(loc);
  return trace->Wrap(trace->builder().Constant(Tensor::Full(DType::kF32, shape, value)));
}

// Batch norms take four axes: those between the channels and the last as one.
Value AtMostFourAxes(const Value& x, Loc loc) {
  if (!x.valid() || x.rank() <= 4) return x;
  std::vector<int64_t> shape(x.shape().dims().begin(), x.shape().dims().begin() + 2);
  const int64_t last = x.shape()[x.rank() - 1];
  int64_t between = 1;
  for (int axis = 2; axis + 1 < x.rank(); ++axis) between *= x.shape()[axis];
  shape.insert(shape.end(), {between, last});
  return reshape(x, shape, loc);
}
Value ShapedLike(const Value& x, const Value& y, Loc loc) {
  if (!y.valid() || y.rank() == x.rank()) return y;
  return reshape(y, {x.shape().dims().begin(), x.shape().dims().end()}, loc);
}

// Whether x is [N,channels,..]; if not, an error of the trace.
bool CheckChannels(const char* layer, const Value& x, int64_t channels, Loc loc) {
  if (!x.valid()) return false;
  if (x.rank() >= 2 && x.shape()[1] == channels) return true;
  nn::Fail(loc, InvalidArgument(layer, ": x is ", Name(x.dtype()), x.shape(), "; expected ",
                                channels, " channels along axis 1"));
  return false;
}

// The axes that a layer normalises over.
absl::StatusOr<Shape> NormalizedShape(const char* layer, const std::vector<int64_t>& extents) {
  const absl::StatusOr<Shape> shape = Shape::Make(extents);
  if (!shape.ok()) return Annotate(shape.status(), Concat(layer, ": "));
  if (shape->rank() == 0 || shape->num_elements() == 0) {
    return InvalidArgument(layer, ": normalized_shape is ", *shape,
                           "; expected one or more extents of at least 1");
  }
  return shape;
}

}  // namespace

namespace internal {

BatchNormLayer::BatchNormLayer(const char* name, int64_t num_features,
                               const BatchNormOptions& options)
    : name_(name), num_features_(num_features), options_(options) {
  Fail(CheckPositive(name, {{"num_features", num_features}}));
  if (!status().ok()) return;
  const Shape shape{num_features};
  if (options.affine) {
    weight = Parameter(shape, kOnes);
    bias = Parameter(shape, kZeros);
  }
  running_mean = Parameter::Buffer(shape, kZeros);
  running_var = Parameter::Buffer(shape, kOnes);
  num_batches_tracked = Parameter::Buffer(Shape{}, kZeros, DType::kI64);
  register_parameter("weight", weight);
  register_parameter("bias", bias);
  register_buffer("running_mean", running_mean);
  register_buffer("running_var", running_var);
  register_buffer("num_batches_tracked", num_batches_tracked);
}

Value BatchNormLayer::forward(const Value& x) {
  const Loc loc = CallSite();
  Trace* trace = Trace::Current();
  if (trace == nullptr) return {};
  const Shape shape{num_features_};
  const Value gamma = OrConstant(weight, shape, 1, loc);
  const Value beta = OrConstant(bias, shape, 0, loc);
  const Value mean(running_mean, loc);
  const Value var(running_var, loc);
  const Value flat = AtMostFourAxes(x, loc);
  if (!trace->module_training()) {
    return ShapedLike(x, batch_norm_inference(flat, gamma, beta, mean, var, options_.eps, loc),
                      loc);
  }
  const Values out =
      batch_norm_training(flat, gamma, beta, mean, var, options_.momentum, options_.eps, loc);
  const Value y = out.vector()[0];
  if (!y.valid()) return y;
  const auto write = [trace, loc](const Parameter& buffer, const Value& after) {
    trace->Write(buffer.storage(), CastTo(after, buffer.dtype(), loc), loc);
  };
  write(running_mean, out[{3, loc}]);
  write(running_var, out[{4, loc}]);
  trace->Write(num_batches_tracked.storage(),
               add(Located(num_batches_tracked, loc), Located(1, loc)), loc);
  return ShapedLike(x, y, loc);
}

std::string BatchNormLayer::description() const { return Concat(name_, "(", num_features_, ")"); }

InstanceNormLayer::InstanceNormLayer(const char* name, int64_t num_features,
                                     const InstanceNormOptions& options)
    : name_(name), num_features_(num_features), options_(options) {
  Fail(CheckPositive(name, {{"num_features", num_features}}));
  if (!status().ok()) return;
  if (options.affine) {
    weight = Parameter(Shape{num_features}, kOnes);
    bias = Parameter(Shape{num_features}, kZeros);
  }
  register_parameter("weight", weight);
  register_parameter("bias", bias);
}

Value InstanceNormLayer::forward(const Value& x) {
  const Loc loc = CallSite();
  if (!CheckChannels(name_, x, num_features_, loc)) return {};
  return instance_norm(x, {weight, loc}, {bias, loc}, options_.eps, loc);
}

std::string InstanceNormLayer::description() const {
  return Concat(name_, "(", num_features_, ")");
}

}  // namespace internal

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, const GroupNormOptions& options)
    : num_groups_(num_groups), num_channels_(num_channels), options_(options) {
  Fail(internal::CheckPositive("GroupNorm",
                               {{"num_groups", num_groups}, {"num_channels", num_channels}}));
  if (!status().ok()) return;
  if (num_channels % num_groups != 0) {
    Fail(InvalidArgument("GroupNorm: num_groups is ", num_groups, "; expected a divisor of ",
                         num_channels, " channels"));
    return;
  }
  if (options.affine) {
    weight = Parameter(Shape{num_channels}, kOnes);
    bias = Parameter(Shape{num_channels}, kZeros);
  }
  register_parameter("weight", weight);
  register_parameter("bias", bias);
}

Value GroupNorm::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  if (!CheckChannels("GroupNorm", x, num_channels_, loc)) return {};
  return group_norm(x, num_groups_, {weight, loc}, {bias, loc}, options_.eps, loc);
}

std::string GroupNorm::description() const {
  return Concat("GroupNorm(", num_groups_, ", ", num_channels_, ")");
}

LayerNorm::LayerNorm(const std::vector<int64_t>& normalized_shape, const LayerNormOptions& options)
    : options_(options) {
  const absl::StatusOr<Shape> shape = NormalizedShape("LayerNorm", normalized_shape);
  if (!shape.ok()) {
    Fail(shape.status());
    return;
  }
  normalized_shape_ = *shape;
  if (options.affine) {
    weight = Parameter(*shape, kOnes);
    bias = Parameter(*shape, kZeros);
  }
  register_parameter("weight", weight);
  register_parameter("bias", bias);
}

Value LayerNorm::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  return layer_norm(x, OrConstant(weight, normalized_shape_, 1, loc),
                    OrConstant(bias, normalized_shape_, 0, loc), options_.eps, loc);
}

std::string LayerNorm::description() const { return Concat("LayerNorm", normalized_shape_); }

RMSNorm::RMSNorm(const std::vector<int64_t>& normalized_shape, const RMSNormOptions& options)
    : options_(options) {
  const absl::StatusOr<Shape> shape = NormalizedShape("RMSNorm", normalized_shape);
  if (!shape.ok()) {
    Fail(shape.status());
    return;
  }
  normalized_shape_ = *shape;
  if (options.affine) weight = Parameter(*shape, kOnes);
  register_parameter("weight", weight);
}

Value RMSNorm::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  const auto extents = normalized_shape_.dims();
  return rms_norm(x, {extents.begin(), extents.end()}, {weight, loc}, options_.eps, loc);
}

std::string RMSNorm::description() const { return Concat("RMSNorm", normalized_shape_); }

}  // namespace halftone::nn
