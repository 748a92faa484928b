// batch_norm, batch_norm_inference, layer_norm and their gradients.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

OpInput Stat(const Shape& shape, double lo = -1, double hi = 1) {
  return Pinned(Reals(shape, lo, hi));
}

void AddBatchNorm(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, ir::Attributes attrs = {}) {
    const Shape c{x[1]};
    OpCase train = Case(
        "batch_norm", variant,
        {Reals(x, -2, 3), Stat(c, 0.5, 1.5), Stat(c), Frozen(Stat(c)), Frozen(Stat(c, 0.5, 2))},
        attrs);
    train.gradient_outputs = {0, 1, 2};
    train.channels_last = x.rank() == 4;
    // Two samples become +1 and -1 whatever they are: the true gradient is nearly 0, and
    // differences see only rounding.
    train.gradient = x.num_elements() / x[1] > 2;
    cases.push_back(train);

    OpCase grad = Case("batch_norm_grad", variant,
                       {Reals(x, -2, 3), Reals(x), Stat(c, 0.5, 1.5), Stat(c), Stat(c, 0.5, 1.5)});
    grad.channels_last = x.rank() == 4;
    cases.push_back(grad);

    OpCase stats = Case("batch_norm_stats", variant,
                        {Reals(x, -2, 3), Stat(c, 0.5, 1.5), Stat(c), Stat(c, 0.5, 2)}, attrs);
    stats.channels_last = x.rank() == 4;
    // Of `low`, what f32 cannot hold of a mean below 4, nothing is left but the error of the mean.
    stats.slack.absolute = 0x1p-22;
    stats.gradient = train.gradient;
    cases.push_back(stats);

    attrs.Erase("momentum");
    OpCase inference =
        Case("batch_norm_inference", variant,
             {Reals(x, -2, 3), Stat(c, 0.5, 1.5), Stat(c), Stat(c), Stat(c, 0.5, 2)}, attrs);
    inference.channels_last = x.rank() == 4;
    cases.push_back(inference);
  };
  add("features", {7, 5});
  add("two_samples", {2, 3});
  add("sequence", {3, 4, 5});
  add("image", {2, 3, 4, 5});
  add("one_channel", {3, 1, 2, 2});
  add("channels33", {2, 33, 3, 3});
  add("blocks", {2, 32, 3, 2});
  add("one_block", {3, 16, 1, 1});
  add("large_eps", {3, 4, 2, 2}, {{"eps", 0.5}, {"momentum", 0.3}});
}

void AddBatchNormApply(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, const Shape& c) {
    cases.push_back(
        Case("batch_norm_apply", variant,
             {Reals(x, -2, 3), Stat(c), Stat(c, -1e-3, 1e-3), Stat(c, 0.5, 1.5), Stat(c)}));
    cases.back().channels_last = x.rank() == 4;
  };
  add("features", {7, 5}, {1, 5});
  add("channels", {2, 33, 3, 2}, {1, 33, 1, 1});
  add("blocks", {2, 32, 3, 2}, {1, 32, 1, 1});
  add("each_of_blocks", {2, 16, 1, 2}, {2, 16, 1, 2});
  add("sequence", {2, 3, 5}, {1, 3, 1});
  add("each", {3, 7}, {3, 7});
  add("empty", {0, 3}, {1, 3});
}

void AddLayerNorm(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& rows, const Shape& normalized,
                       double eps = 1e-5) {
    std::vector<int64_t> dims(rows.dims().begin(), rows.dims().end());
    for (int64_t d : normalized.dims()) dims.push_back(d);
    const Shape x{absl::Span<const int64_t>(dims)};
    const int64_t count = normalized.rank();
    OpCase c =
        Case("layer_norm", variant, {Reals(x, -2, 3), Stat(normalized, 0.5, 1.5), Stat(normalized)},
             {{"axes_count", count}, {"eps", eps}});
    cases.push_back(c);
    cases.push_back(Case(
        "layer_norm_grad", variant,
        {Reals(x, -2, 3), Reals(x), Stat(normalized, 0.5, 1.5), Stat(rows), Stat(rows, 0.5, 1.5)},
        {{"axes_count", count}}));
  };
  add("rows", {5}, {8});
  add("row33", {3}, {33});
  add("vector", {}, {9});
  add("sequence", {2, 3}, {7});
  add("two_axes", {3}, {4, 5});
  add("all_axes", {}, {2, 3, 4});
  add("large_eps", {4}, {6}, 0.5);
  add("no_rows", {0}, {4});
  add("wide", {2}, {257});
}

}  // namespace

void AddCases_normalization(std::vector<OpCase>& cases) {
  AddBatchNorm(cases);
  AddBatchNormApply(cases);
  AddLayerNorm(cases);
}

}  // namespace halftone::testing
