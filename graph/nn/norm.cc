#include "halftone/graph/nn/norm.h"

#include <numeric>

#include "halftone/graph/nn/amp_scope.h"
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

BatchNorm2d::BatchNorm2d(int64_t num_features, const BatchNormOptions& options)
    : num_features_(num_features), options_(options) {
  Fail(internal::CheckPositive("BatchNorm2d", {{"num_features", num_features}}));
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

Value BatchNorm2d::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  internal::Trace* trace = internal::Trace::Current();
  if (trace == nullptr) return {};
  const Shape shape{num_features_};
  const Value gamma = OrConstant(weight, shape, 1, loc);
  const Value beta = OrConstant(bias, shape, 0, loc);
  const Value mean(running_mean, loc);
  const Value var(running_var, loc);
  if (!trace->module_training()) {
    return batch_norm_inference(x, gamma, beta, mean, var, options_.eps, loc);
  }
  const Values out =
      batch_norm_training(x, gamma, beta, mean, var, options_.momentum, options_.eps, loc);
  const Value y = out.vector()[0];
  if (!y.valid()) return y;
  const auto write = [trace, loc](const Parameter& buffer, const Value& after) {
    trace->Write(buffer.storage(), internal::CastTo(after, buffer.dtype(), loc), loc);
  };
  write(running_mean, out[{3, loc}]);
  write(running_var, out[{4, loc}]);
  trace->Write(num_batches_tracked.storage(),
               add(Located(num_batches_tracked, loc), Located(1, loc)), loc);
  return y;
}

std::string BatchNorm2d::description() const { return Concat("BatchNorm2d(", num_features_, ")"); }

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
  if (!x.valid()) return x;
  const auto count = normalized_shape_.dims().size();
  const auto extents = x.shape().dims();
  if (!IsFloat(x.dtype()) || extents.size() < count ||
      extents.subspan(extents.size() - count) != normalized_shape_.dims()) {
    return nn::Fail(
        loc, InvalidArgument("RMSNorm: x is ", Name(x.dtype()), x.shape(),
                             "; expected a floating-point value of last axes ", normalized_shape_));
  }
  const KeepFp32 squares_leave_the_range_of_f16;
  std::vector<int64_t> axes(count);
  std::iota(axes.begin(), axes.end(), -static_cast<int64_t>(count));
  const Value wide = internal::CastTo(x, Promote(x.dtype(), DType::kF32), loc);
  const Value square = mean(mul({wide, loc}, {wide, loc}), axes, true, loc);
  const double eps = options_.eps.value_or(Epsilon(x.dtype()));
  Value y = div({wide, loc}, {sqrt(add({square, loc}, {eps, loc}), loc), loc});
  if (weight.defined()) y = mul({y, loc}, {weight, loc});
  return internal::CastTo(y, x.dtype(), loc);
}

std::string RMSNorm::description() const { return Concat("RMSNorm", normalized_shape_); }

}  // namespace halftone::nn
