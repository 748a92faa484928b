#include <limits>

#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

// One element, around the width of a vector, several axes, none, and (not for gradients, which
// underflow there) far out.
void AddShapes(std::vector<OpCase>& cases, const std::string& op, ir::Attributes attrs = {},
               const std::string& suffix = "") {
  const auto add = [&](const std::string& variant, OpInput x) {
    cases.push_back(Case(op, variant + suffix, {std::move(x)}, attrs));
  };
  add("one", Distinct({1}));
  add("31", Distinct({31}, -3, 3));
  add("33", Distinct({33}, -3, 3));
  add("scalar", Distinct({}));
  add("matrix", Distinct({5, 7}, -2, 2));
  add("rank4", Distinct({2, 16, 1, 3}, -4, 4));
  cases.back().channels_last = true;
  add("empty", Distinct({3, 0}));
  add("wide", Distinct({67}, -30, 30));
  cases.back().gradient = false;
}

// frozen: x or y only says which way the gradient goes.
void AddGradShapes(std::vector<OpCase>& cases, const std::string& op, double lo, double hi,
                   ir::Attributes attrs = {}, const std::string& suffix = "", bool frozen = false) {
  const auto add = [&](const std::string& variant, const Shape& shape) {
    const OpInput at = Distinct(shape, lo, hi);
    cases.push_back(
        Case(op, variant + suffix, {frozen ? Frozen(at) : at, Reals(shape, -2, 2)}, attrs));
  };
  add("one", {1});
  add("31", {31});
  add("33", {33});
  add("rank4", {2, 16, 1, 3});
  cases.back().channels_last = true;
  add("empty", {0, 4});
}

}  // namespace

void AddCases_activation(std::vector<OpCase>& cases) {
  for (const char* op : {"relu", "relu6", "sigmoid", "hardsigmoid", "logsigmoid", "tanh", "silu",
                         "hardswish", "mish", "softplus", "selu", "softsign"}) {
    AddShapes(cases, op);
  }
  const ir::Attributes slope = {{"negative_slope", 0.2}}, alpha = {{"alpha", 1.5}};
  const ir::Attributes ends = {{"min_val", -1.25}, {"max_val", 2.5}};
  const ir::Attributes one_end = {{"min_val", -0.75},
                                  {"max_val", std::numeric_limits<double>::infinity()}};
  AddShapes(cases, "leaky_relu", slope);
  AddShapes(cases, "elu", alpha);
  AddShapes(cases, "hardtanh", ends);
  AddShapes(cases, "hardtanh", one_end, "_one_end");
  const ir::Attributes by_erf = {{"approximate", std::string("none")}};
  const ir::Attributes by_tanh = {{"approximate", std::string("tanh")}};
  AddShapes(cases, "gelu", by_erf);
  AddShapes(cases, "gelu", by_tanh, "_tanh");

  // y of relu is not negative, of sigmoid in (0, 1), of tanh in (-1, 1); relu_grad takes any.
  AddGradShapes(cases, "relu_grad", -1, 1, {}, "", /*frozen=*/true);
  AddGradShapes(cases, "relu6_grad", -1, 8, {}, "", /*frozen=*/true);
  AddGradShapes(cases, "hardsigmoid_grad", -4, 4, {}, "", /*frozen=*/true);
  AddGradShapes(cases, "hardtanh_grad", -4, 4, ends, "", /*frozen=*/true);
  AddGradShapes(cases, "hardtanh_grad", -4, 4, one_end, "_one_end", /*frozen=*/true);
  AddGradShapes(cases, "leaky_relu_grad", -4, 4, slope, "", /*frozen=*/true);
  AddGradShapes(cases, "sigmoid_grad", 0, 1);
  AddGradShapes(cases, "tanh_grad", -1, 1);
  AddGradShapes(cases, "silu_grad", -4, 4);
  for (const char* op : {"softplus_grad", "logsigmoid_grad", "hardswish_grad", "mish_grad",
                         "selu_grad", "softsign_grad"}) {
    AddGradShapes(cases, op, -4, 4);
  }
  AddGradShapes(cases, "elu_grad", -4, 4, alpha);
  AddGradShapes(cases, "gelu_grad", -4, 4, by_erf);
  AddGradShapes(cases, "gelu_grad", -4, 4, by_tanh, "_tanh");
}

}  // namespace halftone::testing
