#include "halftone/core/status.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/trace.h"

namespace halftone::nn {
namespace {

// A random op whose numbers no other op of the step shares.
Value Drawn(const char* op, const std::vector<Value>& inputs, ir::Attributes attrs, Loc loc) {
  internal::Trace* trace = internal::Trace::Current();
  if (trace == nullptr) return {};
  attrs.Set("seed", trace->NextRandomSeed());
  return Op(op, inputs, std::move(attrs), loc);
}

}  // namespace

Value rand(const std::vector<int64_t>& shape, DType dtype, Loc loc) {
  return Drawn("random_uniform", {}, {{"shape", shape}, {"dtype", dtype}}, loc);
}

Value randn(const std::vector<int64_t>& shape, DType dtype, Loc loc) {
  return Drawn("random_normal", {}, {{"shape", shape}, {"dtype", dtype}}, loc);
}

Value uniform(double low, double high, const std::vector<int64_t>& shape, DType dtype, Loc loc) {
  return Drawn("random_uniform", {},
               {{"shape", shape}, {"dtype", dtype}, {"low", low}, {"high", high}}, loc);
}

Value normal(double mean, double std, const std::vector<int64_t>& shape, DType dtype, Loc loc) {
  return Drawn("random_normal", {},
               {{"shape", shape}, {"dtype", dtype}, {"mean", mean}, {"std", std}}, loc);
}

Value bernoulli(const Value& x, Loc loc) { return Drawn("bernoulli", {x}, {}, loc); }

Value dropout(const Value& x, double p, Loc loc) {
  internal::Trace* trace = internal::Trace::Current();
  if (trace == nullptr) return {};
  if (!(p >= 0 && p < 1)) {
    return Fail(loc, InvalidArgument("dropout: p is ", p, "; expected 0 <= p < 1"));
  }
  // The ordinal advances in any mode and for any p: a change of one layer moves no other's masks.
  const int64_t seed = trace->NextRandomSeed();
  if (!trace->module_training() || p == 0) return x;
  return Op("dropout", {x}, {{"p", p}, {"seed", seed}}, loc);
}

}  // namespace halftone::nn
