// Losses. They are f32 (f64 for f64 inputs) also where their inputs are 16-bit. reduction: "mean",
// "sum" or "none".
#pragma once

#include <string>

#include "halftone/graph/nn/op.h"

namespace halftone::nn {

struct CrossEntropyOptions {
  double label_smoothing = 0;   // [0, 1]: weight of the uniform distribution
  int64_t ignore_index = -100;  // positions with this target count neither in sum nor in mean
  std::string reduction = "mean";
  int64_t axis = 1;  // of the classes
};

// -log softmax(logits)[target]. Shapes: logits [N,C,..], target [N,..] (i64 or i32) -> [] or, with
// "none", the shape of target. If every target is ignored the mean is NaN, as in PyTorch.
// Errors of the run: a target outside [0, C) that is not ignore_index.
inline Value cross_entropy(const Value& logits, const Value& target,
                           const CrossEntropyOptions& options = {}, Loc loc = Loc::current()) {
  return internal::Op("cross_entropy", {logits, target},
                      {{"axis", internal::Axis("cross_entropy", logits, options.axis, loc)},
                       {"label_smoothing", options.label_smoothing},
                       {"ignore_index", options.ignore_index},
                       {"reduction", options.reduction}},
                      loc);
}
// (a - b)^2. Shapes: a and b alike. They do not broadcast: [N,1] against [N] would silently be an
// [N,N] of differences. Errors: "mse_loss: b is f32[4]; expected f32[4,1] (type of a)".
inline Value mse_loss(const Value& a, const Value& b, const std::string& reduction = "mean",
                      Loc loc = Loc::current()) {
  return internal::Promoted("mse_loss", {a, b}, {{"reduction", reduction}}, loc);
}
// |a - b|. Shapes: a and b alike, as for mse_loss.
inline Value l1_loss(const Value& a, const Value& b, const std::string& reduction = "mean",
                     Loc loc = Loc::current()) {
  return internal::Promoted("l1_loss", {a, b}, {{"reduction", reduction}}, loc);
}

}  // namespace halftone::nn
