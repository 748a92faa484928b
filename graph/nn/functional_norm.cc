#include "halftone/graph/nn/functional.h"

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

}  // namespace halftone::nn
