#include "halftone/graph/nn/functional.h"

namespace halftone::nn {

Value cross_entropy(const Value& logits, const Value& target, const CrossEntropyOptions& options,
                    Loc loc) {
  return Op("cross_entropy", {logits, target},
            {{"axis", internal::Axis("cross_entropy", logits, options.axis, loc)},
             {"label_smoothing", options.label_smoothing},
             {"ignore_index", options.ignore_index},
             {"reduction", options.reduction}},
            loc);
}

Value mse_loss(const Value& a, const Value& b, const std::string& reduction, Loc loc) {
  return internal::Promoted("mse_loss", {a, b}, {{"reduction", reduction}}, loc);
}

Value l1_loss(const Value& a, const Value& b, const std::string& reduction, Loc loc) {
  return internal::Promoted("l1_loss", {a, b}, {{"reduction", reduction}}, loc);
}

}  // namespace halftone::nn
