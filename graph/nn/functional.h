// The functions over values. functions.def describes each: what it computes, shapes, errors. Every
// one ends in `Loc loc = Loc::current()`, the line that its errors name.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "halftone/core/doc.h"
#include "halftone/core/tensor.h"
#include "halftone/graph/nn/functional_elementwise.h"
#include "halftone/graph/nn/options.h"
#include "halftone/graph/nn/parameter.h"

namespace halftone::nn {

#define HT_FUNCTION(Result, name, doc) HT_DOC(doc) Result name(
#define HT_TEMPLATE(F, Result, name, doc) \
  HT_DOC(doc)                             \
  template <typename F>                   \
  Result name(
#define HT_ARG(type, name) type name,
#define HT_DEFAULT(type, name, value) type name = value,
#define HT_TAKES(Options) const Options &options = {},
#define HT_END_FUNCTION(name) Loc loc = Loc::current());
#include "halftone/graph/nn/functions.def"

// Without a bias.
#define HT_WITHOUT_BIAS(function, Options)                                           \
  inline Value function(const Value& x, const Value& weight, const Options& options, \
                        Loc loc = Loc::current()) {                                  \
    return function(x, weight, std::nullopt, options, loc);                          \
  }
HT_WITHOUT_BIAS(conv1d, Conv1dOptions)
HT_WITHOUT_BIAS(conv2d, Conv2dOptions)
HT_WITHOUT_BIAS(conv3d, Conv3dOptions)
HT_WITHOUT_BIAS(conv_transpose1d, ConvTranspose1dOptions)
HT_WITHOUT_BIAS(conv_transpose2d, ConvTranspose2dOptions)
HT_WITHOUT_BIAS(conv_transpose3d, ConvTranspose3dOptions)
#undef HT_WITHOUT_BIAS

// Without a mask.
inline Value scaled_dot_product_attention(const Value& query, const Value& key, const Value& value,
                                          const AttentionOptions& options,
                                          Loc loc = Loc::current()) {
  return scaled_dot_product_attention(query, key, value, std::nullopt, options, loc);
}

template <typename F>
Value apply_where(const Value& condition, const Value& x, const F& f, Located otherwise,
                  double safe_input, Loc loc) {
  const Value safe = where(condition, Located(x, loc), Located(safe_input, loc), loc);
  return where(condition, Located(f(safe), loc), otherwise, loc);
}

// What nn::BatchNorm2d is made of. Over all axes but 1, with given statistics. Shapes: x [N,C,..],
// the rest [C].
Value batch_norm_inference(const Value& x, const Value& gamma, const Value& beta, const Value& mean,
                           const Value& var, double eps = BatchNormOptions{}.eps,
                           Loc loc = Loc::current());
// Over all axes but 1, with the batch's own statistics. Gives y, the batch's mean, its 1/sqrt(var +
// eps), and the running mean and (unbiased) variance after this batch: new = (1 - momentum) * old +
// momentum * batch. Nothing is written; nn::BatchNorm2d writes its buffers.
Values batch_norm_training(const Value& x, const Value& gamma, const Value& beta,
                           const Value& running_mean, const Value& running_var,
                           double momentum = BatchNormOptions{}.momentum,
                           double eps = BatchNormOptions{}.eps, Loc loc = Loc::current());

}  // namespace halftone::nn
