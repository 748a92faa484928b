#include <algorithm>
#include <numeric>

#include "halftone/graph/nn/amp_scope.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/functional_formula.h"
#include "halftone/graph/ops/support/nn.h"

namespace halftone::nn {
namespace {

// x first, then what is f32 beside a 16-bit x: cast to what the ops expect.
std::vector<Value> NormOperands(const Value& x, std::vector<Value> others, Loc loc) {
  if (!IsFloat(x.dtype())) {  // the op says what is wrong
    others.insert(others.begin(), x);
    return others;
  }
  DType wide = Promote(x.dtype(), DType::kF32);
  for (const Value& other : others) wide = Promote(wide, other.dtype());
  for (Value& other : others) other = internal::CastTo(other, wide, loc);
  others.insert(others.begin(), wide == DType::kF64 ? internal::CastTo(x, wide, loc) : x);
  return others;
}

using Ints = std::vector<int64_t>;

Value Full(const Shape& shape, double value, Loc loc) {
  return constant(Tensor::Full(DType::kF32, shape, value), loc);
}

Ints ExtentsOf(const Value& x) { return {x.shape().dims().begin(), x.shape().dims().end()}; }

// The parameter of every channel, or `otherwise`.
Value OfChannels(const OptionalValue& parameter, int64_t channels, double otherwise, Loc loc) {
  return parameter.has_value() ? parameter.value() : Full({channels}, otherwise, loc);
}

// Whether x is [N,C,..] of floats and parameters are [C]; if not, an error of the trace.
bool CheckGroupNorm(const char* op, const Value& x, const OptionalValue& weight,
                    const OptionalValue& bias, Loc loc) {
  if (!x.valid() || !internal::CheckFloats(op, x, loc)) return false;
  if (x.rank() < 2) {
    Fail(loc,
         InvalidArgument(op, ": x is ", Name(x.dtype()), x.shape(), "; expected rank 2 or more"));
    return false;
  }
  const Shape channels{x.shape()[1]};
  for (const auto& [name, parameter] : {std::pair("weight", weight), std::pair("bias", bias)}) {
    if (!parameter.has_value()) continue;
    if (!parameter.value().valid()) return false;
    if (parameter.value().shape() == channels) continue;
    Fail(loc, InvalidArgument(op, ": ", name, " is ", Name(parameter.value().dtype()),
                              parameter.value().shape(), "; expected ", channels));
    return false;
  }
  return true;
}

// Batch norm over one image whose channels are the groups of all images: each has its own
// statistics, and gamma and beta of its own.
Value OverGroups(const Value& x, int64_t groups, int64_t size, const Value& gamma,
                 const Value& beta, double eps, Loc loc) {
  if (size == 1) {  // of which batch norm has no running variance
    const Value rows = reshape(x, {groups, 1}, loc);
    return layer_norm(rows, Full({1}, 1, loc), Full({1}, 0, loc), eps, loc);
  }
  const Value zeros = Full({groups}, 0, loc), ones = Full({groups}, 1, loc);
  return batch_norm_training(reshape(x, {1, groups, size}, loc), gamma, beta, zeros, ones,
                             BatchNormOptions{}.momentum, eps, loc)[{0, loc}];
}

}  // namespace

Value layer_norm(const Value& x, const Value& gamma, const Value& beta, double eps, Loc loc) {
  return Op("layer_norm", NormOperands(x, {gamma, beta}, loc),
            {{"axes_count", int64_t{gamma.valid() ? gamma.rank() : 1}}, {"eps", eps}}, loc);
}

Value batch_norm_inference(const Value& x, const Value& gamma, const Value& beta, const Value& mean,
                           const Value& var, double eps, Loc loc) {
  return Op("batch_norm_inference", NormOperands(x, {gamma, beta, mean, var}, loc), {{"eps", eps}},
            loc);
}

Values batch_norm_training(const Value& x, const Value& gamma, const Value& beta,
                           const Value& running_mean, const Value& running_var, double momentum,
                           double eps, Loc loc) {
  return Ops("batch_norm", NormOperands(x, {gamma, beta, running_mean, running_var}, loc),
             {{"momentum", momentum}, {"eps", eps}}, loc);
}

Value group_norm(const Value& x, int64_t num_groups, const OptionalValue& weight,
                 const OptionalValue& bias, double eps, Loc loc) {
  if (!CheckGroupNorm("group_norm", x, weight, bias, loc)) return {};
  const int64_t n = x.shape()[0], c = x.shape()[1];
  if (num_groups < 1 || c % num_groups != 0 || num_groups > std::max<int64_t>(c, 1)) {
    return Fail(loc, InvalidArgument("group_norm: num_groups is ", num_groups,
                                     "; expected a divisor of ", c, " channels"));
  }
  const int64_t count = x.shape().num_elements(), groups = n * num_groups;
  if (count == 0) return x;
  if (num_groups == c && count > groups) return instance_norm(x, weight, bias, eps, loc);
  const Value y = OverGroups(x, groups, count / groups, Full({groups}, 1, loc),
                             Full({groups}, 0, loc), eps, loc);
  if (!weight.has_value() && !bias.has_value()) return reshape(y, ExtentsOf(x), loc);
  // Statistics 0 and 1 leave y * weight + bias, in one pass.
  const Value affine = batch_norm_inference(
      reshape(y, {n, c, count / (n * c)}, loc), OfChannels(weight, c, 1, loc),
      OfChannels(bias, c, 0, loc), Full({c}, 0, loc), Full({c}, 1, loc), 0, loc);
  return reshape(affine, ExtentsOf(x), loc);
}

Value instance_norm(const Value& x, const OptionalValue& weight, const OptionalValue& bias,
                    double eps, Loc loc) {
  if (!CheckGroupNorm("instance_norm", x, weight, bias, loc)) return {};
  const int64_t n = x.shape()[0], c = x.shape()[1], count = x.shape().num_elements();
  if (count == 0) return x;
  if (count == n * c) {
    return Fail(loc, InvalidArgument("instance_norm: x is ", Name(x.dtype()), x.shape(),
                                     "; expected more than one element a channel of an image"));
  }
  const auto of_all_images = [&](const OptionalValue& parameter, double otherwise) {
    if (!parameter.has_value()) return Full({n * c}, otherwise, loc);
    return reshape(broadcast_to(parameter.value(), {n, c}, loc), {n * c}, loc);
  };
  const Value y = OverGroups(x, n * c, count / (n * c), of_all_images(weight, 1),
                             of_all_images(bias, 0), eps, loc);
  return reshape(y, ExtentsOf(x), loc);
}

Value rms_norm(const Value& x, const std::vector<int64_t>& normalized_shape,
               const OptionalValue& weight, std::optional<double> eps, Loc loc) {
  if (!x.valid()) return x;
  const auto count = normalized_shape.size();
  const auto extents = x.shape().dims();
  if (!IsFloat(x.dtype()) || count == 0 || extents.size() < count ||
      extents.subspan(extents.size() - count) != absl::MakeConstSpan(normalized_shape)) {
    return Fail(loc, InvalidArgument("rms_norm: x is ", Name(x.dtype()), x.shape(),
                                     "; expected a floating-point value of last axes ",
                                     ops::IntsText(normalized_shape)));
  }
  if (weight.has_value() && weight.value().valid() &&
      weight.value().shape().dims() != absl::MakeConstSpan(normalized_shape)) {
    return Fail(loc, InvalidArgument("rms_norm: weight is ", Name(weight.value().dtype()),
                                     weight.value().shape(), "; expected ",
                                     ops::IntsText(normalized_shape)));
  }
  const KeepFp32 squares_leave_the_range_of_f16;
  std::vector<int64_t> axes(count);
  std::iota(axes.begin(), axes.end(), -static_cast<int64_t>(count));
  const Value wide = internal::Wide(x, loc);
  const Value square = mean(mul({wide, loc}, {wide, loc}), axes, true, loc);
  Value y = div({wide, loc},
                {sqrt(add({square, loc}, {eps.value_or(Epsilon(x.dtype())), loc}), loc), loc});
  if (weight.has_value()) y = mul({y, loc}, {weight.value(), loc});
  return internal::CastTo(y, x.dtype(), loc);
}

}  // namespace halftone::nn
