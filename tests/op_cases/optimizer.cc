// The updates of optimizers, grad_stats and its parts, loss_scale_update: f32, and updates that round to bf16; no
// gradient.
#include <limits>

#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

OpInput Number(double value) { return Pinned(Frozen(Fixed({}, {value}))); }
OpInput Flag(bool value) { return Whole(DType::kBool, {}, value, value); }
OpInput Count(DType dtype, int64_t value) {
  return Whole(dtype, {}, static_cast<double>(value), static_cast<double>(value));
}

OpCase InF32(OpCase c) {
  c.gradient = false;
  c.dtypes = {DType::kF32};
  return c;
}

// param grad lr inv_scale clip apply step
std::vector<OpInput> UpdateInputs(const Shape& shape, bool apply, int64_t step) {
  return {Reals(shape), Reals(shape, -1024, 1024), Number(0.1), Number(1.0 / 1024), Number(0.75f),
          Flag(apply),  Count(DType::kI64, step)};
}

void AddSgd(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& shape, bool apply, int64_t step,
                       double momentum, ir::Attributes attrs = {}) {
    std::vector<OpInput> inputs = UpdateInputs(shape, apply, step);
    if (momentum > 0) inputs.push_back(Reals(shape));
    attrs.Set("momentum", momentum);
    cases.push_back(InF32(Case("sgd_update", variant, std::move(inputs), attrs)));
  };
  add("plain", {33}, true, 1, 0);
  add("decay", {5, 7}, true, 4, 0, {{"weight_decay", 0.01}});
  add("skipped", {33}, false, 4, 0);
  add("momentum_first", {33}, true, 1, 0.9);
  add("momentum_later", {33}, true, 2, 0.9);
  add("momentum_skipped", {33}, false, 2, 0.9);
  add("dampening", {9}, true, 3, 0.9, {{"dampening", 0.25}, {"weight_decay", 0.1}});
  add("nesterov_first", {9}, true, 1, 0.9, {{"nesterov", true}});
  add("nesterov_later", {65}, true, 5, 0.5, {{"nesterov", true}, {"weight_decay", 0.1}});
  add("clip_value", {33}, true, 2, 0.9, {{"clip_value", 0.25}, {"weight_decay", 0.1}});
  add("scalar", {}, true, 2, 0.9);
  add("empty", {0}, true, 2, 0.9);
}

void AddAdam(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& shape, bool apply, int64_t step,
                       ir::Attributes attrs = {}) {
    std::vector<OpInput> inputs = UpdateInputs(shape, apply, step);
    inputs.push_back(Reals(shape));
    inputs.push_back(Reals(shape, 0.01, 1));
    cases.push_back(InF32(Case("adam_update", variant, std::move(inputs), std::move(attrs))));
  };
  add("first", {33}, true, 1);
  add("later", {5, 13}, true, 100);
  add("skipped", {33}, false, 100);
  add("decay", {33}, true, 7, {{"weight_decay", 0.01}});
  add("decoupled", {33}, true, 7, {{"weight_decay", 0.01}, {"decoupled", true}});
  add("own_constants", {9}, true, 3, {{"beta1", 0.8}, {"beta2", 0.95}, {"eps", 1e-3}});
  add("lazy", {33}, true, 3, {{"lazy", true}, {"eps", 1e-3}});
  add("clip_value", {33}, true, 7, {{"clip_value", 0.25}, {"weight_decay", 0.1}});
  add("scalar", {}, true, 2);
  add("empty", {0}, true, 2);
}

void AddRmsprop(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& shape, bool apply, int64_t step,
                       bool centered, double momentum, ir::Attributes attrs = {}) {
    std::vector<OpInput> inputs = UpdateInputs(shape, apply, step);
    inputs.push_back(Reals(shape, 1, 2));  // above the square of the average gradient
    if (centered) inputs.push_back(Reals(shape, -0.5, 0.5));
    if (momentum > 0) inputs.push_back(Reals(shape));
    attrs.Set("centered", centered);
    attrs.Set("momentum", momentum);
    cases.push_back(InF32(Case("rmsprop_update", variant, std::move(inputs), std::move(attrs))));
  };
  add("plain", {33}, true, 1, false, 0);
  add("decay", {5, 7}, true, 4, false, 0, {{"weight_decay", 0.01}, {"alpha", 0.75}, {"eps", 0.01}});
  add("centered", {33}, true, 2, true, 0);
  add("momentum", {65}, true, 2, false, 0.9);
  add("centered_momentum", {33}, true, 3, true, 0.9, {{"weight_decay", 0.1}});
  add("skipped", {33}, false, 4, true, 0.9);
  add("clip_value", {33}, true, 2, false, 0, {{"clip_value", 0.25}});
  add("scalar", {}, true, 2, true, 0.9);
  add("empty", {0}, true, 2, false, 0);
}

void AddAdagrad(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& shape, bool apply, int64_t step,
                       ir::Attributes attrs = {}) {
    std::vector<OpInput> inputs = UpdateInputs(shape, apply, step);
    inputs.push_back(Reals(shape, 0.01, 1));
    cases.push_back(InF32(Case("adagrad_update", variant, std::move(inputs), std::move(attrs))));
  };
  add("first", {33}, true, 1);
  add("later", {5, 13}, true, 100, {{"lr_decay", 0.25}, {"eps", 0.01}});
  add("decay", {65}, true, 7, {{"weight_decay", 0.1}, {"initial_accumulator_value", 0.5}});
  add("skipped", {33}, false, 4);
  add("clip_value", {33}, true, 2, {{"clip_value", 0.25}});
  add("scalar", {}, true, 2);
  add("empty", {0}, true, 2);
}

void AddLion(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& shape, bool apply, int64_t step,
                       ir::Attributes attrs = {}) {
    std::vector<OpInput> inputs = UpdateInputs(shape, apply, step);
    // Apart from the gradients, so that no sign hangs on a rounding.
    inputs[1] = Reals(shape, 512, 1024);
    inputs.push_back(step % 2 == 0 ? Reals(shape, -1, -0.5) : Reals(shape, 0, 1));
    cases.push_back(InF32(Case("lion_update", variant, std::move(inputs), std::move(attrs))));
  };
  add("first", {33}, true, 1);
  add("later", {5, 13}, true, 100);
  add("decay", {65}, true, 7, {{"weight_decay", 0.1}, {"beta1", 0.5}, {"beta2", 0.75}});
  add("skipped", {33}, false, 4);
  add("clip_value", {33}, true, 2, {{"clip_value", 0.25}});
  add("scalar", {}, true, 2);
  add("empty", {0}, true, 2);
  std::vector<OpInput> still = UpdateInputs({5}, true, 2);
  still[1] = Fixed({5}, {0, 1024, 0, -1024, 0});
  still.push_back(Fixed({5}, {0, 0, 1, 0, -1}));
  cases.push_back(InF32(Case("lion_update", "no_sign", std::move(still))));
}

void AddNadam(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& shape, bool apply, int64_t step,
                       ir::Attributes attrs = {}) {
    std::vector<OpInput> inputs = UpdateInputs(shape, apply, step);
    inputs.push_back(Reals(shape));
    inputs.push_back(Reals(shape, 0.01, 1));
    cases.push_back(InF32(Case("nadam_update", variant, std::move(inputs), std::move(attrs))));
  };
  add("first", {33}, true, 1);
  add("later", {5, 13}, true, 100);
  add("much_later", {9}, true, 1'000'000);
  add("skipped", {33}, false, 100);
  add("decay", {33}, true, 7, {{"weight_decay", 0.01}});
  add("decoupled", {65}, true, 7, {{"weight_decay", 0.1}, {"decoupled_weight_decay", true}});
  add("own_constants", {9}, true, 3, {{"beta1", 0.8}, {"beta2", 0.95}, {"momentum_decay", 0.5}});
  add("clip_value", {33}, true, 7, {{"clip_value", 0.25}, {"weight_decay", 0.1}});
  add("scalar", {}, true, 2);
  add("empty", {0}, true, 2);
}

void AddLamb(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& shape, bool apply, int64_t step,
                       ir::Attributes attrs = {}) {
    std::vector<OpInput> inputs = UpdateInputs(shape, apply, step);
    inputs.push_back(Reals(shape));
    inputs.push_back(Reals(shape, 0.01, 1));
    cases.push_back(InF32(Case("lamb_update", variant, std::move(inputs), std::move(attrs))));
  };
  add("first", {33}, true, 1);
  add("later", {5, 13}, true, 100);
  add("several_blocks", {20'001}, true, 3);
  add("skipped", {33}, false, 100);
  add("no_decay", {33}, true, 7, {{"weight_decay", 0.0}});
  add("own_constants", {9}, true, 3, {{"beta1", 0.8}, {"beta2", 0.95}, {"eps", 1e-3}});
  add("clip_value", {33}, true, 7, {{"clip_value", 0.25}, {"weight_decay", 0.1}});
  add("scalar", {}, true, 2);
  add("empty", {0}, true, 2);
  std::vector<OpInput> at_zero = UpdateInputs({7}, true, 2);
  at_zero[0] = Reals({7}, 0, 0);
  at_zero.push_back(Reals({7}));
  at_zero.push_back(Reals({7}, 0.01, 1));
  cases.push_back(InF32(Case("lamb_update", "no_norm", std::move(at_zero))));
}

// Updates of rows: a table of 9 rows, three of whose ids are none.
void AddRows(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& op, const std::string& variant, int64_t width, bool apply,
                       int states, ir::Attributes attrs = {}, std::vector<double> ids = {}) {
    if (ids.empty()) ids = {2, 5, 8, 0, -1, 9, -1};
    const auto count = static_cast<int64_t>(ids.size());
    const Shape table = {9, width};
    std::vector<OpInput> inputs = UpdateInputs(table, apply, 3);
    inputs[1] = Reals({count, width}, -1024, 1024);
    OpInput of_rows = Whole(DType::kI64, {count}, -1, 9);
    of_rows.gen = Fixed({count}, ids).gen;
    inputs.push_back(of_rows);
    for (int i = 0; i < states; ++i) inputs.push_back(Reals(table, 0.01, 1));
    cases.push_back(InF32(Case(op, variant, std::move(inputs), std::move(attrs))));
  };
  add("sgd_update_rows", "plain", 5, true, 0);
  add("sgd_update_rows", "wide", 65, true, 0, {{"clip_value", 0.25}});
  add("sgd_update_rows", "packs", 16, true, 0);
  add("sgd_update_rows", "skipped", 5, false, 0);
  add("sgd_update_rows", "momentum", 5, true, 1, {{"momentum", 0.9}, {"weight_decay", 0.1}});
  add("sgd_update_rows", "no_width", 0, true, 0);
  add("sgd_update_rows", "nothing", 5, true, 0, {}, {-1});
  add("adagrad_update_rows", "plain", 5, true, 1);
  add("adagrad_update_rows", "packs", 12, true, 1, {{"lr_decay", 0.25}, {"eps", 0.01}});
  add("adagrad_update_rows", "skipped", 12, false, 1);
  add("adam_update_rows", "plain", 5, true, 2, {{"lazy", true}});
  add("adam_update_rows", "packs", 64, true, 2, {{"lazy", true}, {"eps", 0.01}});
  add("adam_update_rows", "skipped", 5, false, 2, {{"lazy", true}});
}

void AddMovingAverage(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& shape, bool apply, double weight) {
    std::vector<OpInput> inputs = {Reals(shape), Reals(shape), Number(weight),       Number(1),
                                   Number(1),    Flag(apply),  Count(DType::kI64, 5)};
    cases.push_back(InF32(Case("moving_average_update", variant, std::move(inputs))));
  };
  add("plain", {33}, true, 0.125);
  add("slow", {5, 13}, true, 1e-4);
  add("value", {65}, true, 1);
  add("skipped", {33}, false, 0.125);
  add("scalar", {}, true, 0.5);
  add("empty", {0}, true, 0.5);
}

void AddGradientSum(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, OpInput sum, OpInput grad, double step) {
    std::vector<OpInput> inputs = {std::move(sum),          std::move(grad), Number(1),
                                   Number(0.125),           Number(1),       Flag(true),
                                   Count(DType::kI64, step)};
    cases.push_back(InF32(Case("gradient_sum_update", variant, std::move(inputs))));
  };
  const double inf = std::numeric_limits<double>::infinity();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  add("adds", Reals({33}), Reals({33}), 2);
  add("starts", Reals({5, 13}), Reals({5, 13}), 1);
  add("starts_over_nan", Fixed({3}, {nan, inf, 1}), Fixed({3}, {1, 2, 3}), 1);
  add("keeps_nan", Fixed({3}, {nan, inf, -inf}), Fixed({3}, {1, 2, inf}), 3);
  add("scalar", Reals({}), Reals({}), 7);
  add("empty", Reals({0}), Reals({0}), 2);
}

// All from `first` on in bf16.
void AddLowUpdates(std::vector<OpCase>& cases, size_t first) {
  const std::vector<OpCase> in_f32(cases.begin() + static_cast<int64_t>(first), cases.end());
  for (OpCase c : in_f32) {
    const std::string name = c.name;
    c.dtypes = {DType::kBF16};
    c.attrs.Set("seed", int64_t{1234567890123});
    c.attrs.Set("rounding", std::string("stochastic"));
    c.name = name + "_stochastic";
    cases.push_back(c);
    c.attrs.Set("rounding", std::string("kahan"));
    c.name = name + "_kahan";
    // Of parameters below 1: some are too large to be theirs.
    c.inputs.push_back(Reals(c.inputs[0].type.shape, -0x1p-10, 0x1p-10));
    // A compensation is what rounding took from a parameter below 2, whose last digit in f32 depends on
    // the order of the sums that the trust ratio is made of.
    if (c.op == "lamb_update") c.slack.absolute = 0x1p-23;
    cases.push_back(c);
  }
}

void AddGradStats(std::vector<OpCase>& cases) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto add = [&](const std::string& variant, std::vector<OpInput> grads) {
    grads.insert(grads.begin(), Number(1.0 / 1024));
    cases.push_back(InF32(Case("grad_squares", variant, grads)));
    cases.back().slack.factor =
        100;  // results of f64, whose last digits show the order of 70,001 terms
    cases.push_back(InF32(Case("grad_stats", variant, std::move(grads))));
  };
  add("none", {});
  add("one", {Reals({33}, -100, 100)});
  add("several", {Reals({3}, -1, 1), Reals({5, 7}, -9, 9), Reals({}, 0, 1)});
  add("with_empty", {Reals({0}), Reals({5})});
  add("inf_last", {Reals({3}), Fixed({2}, {1, inf})});
  add("nan_first", {Fixed({2}, {std::numeric_limits<double>::quiet_NaN(), 1}), Fixed({1}, {-inf})});
  add("long", {Reals({70001}, -1, 1), Reals({40000}, -1, 1)});
  OpCase mixed = Case("grad_stats", "several_dtypes",
                      {Number(1.0 / 1024), Reals({8200}, -9, 9), Reals({31}), Reals({5})});
  mixed.inputs[1].type.dtype = DType::kBF16;
  mixed.inputs[2].type.dtype = DType::kF16;
  mixed.inputs[1] = Pinned(mixed.inputs[1]);
  mixed.inputs[2] = Pinned(mixed.inputs[2]);
  cases.push_back(InF32(mixed));
  OpCase squares = Case("grad_squares", "several_dtypes", mixed.inputs);
  cases.push_back(InF32(squares));
}

// Sums of squares, then whether each gradient has an element that is not finite.
void AddStatsOfSquares(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, std::vector<double> squares) {
    const auto gradients = static_cast<int64_t>(squares.size()) / 2;
    OpCase of = Case("grad_stats_of_squares", variant, {Fixed({2, gradients}, std::move(squares))});
    of.inputs[0].type.dtype = DType::kF64;
    of.inputs[0] = Pinned(of.inputs[0]);
    cases.push_back(InF32(of));
  };
  add("finite", {9, 16, 0, 0, 0, 0});
  add("second_is_not", {1, std::numeric_limits<double>::infinity(), 4, 0, 1, 0});
  add("two_are_not", {1, 2, std::numeric_limits<double>::quiet_NaN(), 1, 0, 1});
  add("one", {4, 0});
}

void AddLossScale(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, double scale, int64_t tracker, int64_t left,
                       bool finite, ir::Attributes attrs = {}) {
    cases.push_back(InF32(
        Case("loss_scale_update", variant,
             {Number(scale), Count(DType::kI32, tracker), Count(DType::kI32, left),
              Count(DType::kI64, 10), Count(DType::kI64, 3), Count(DType::kI64, 2), Flag(finite)},
             std::move(attrs))));
  };
  add("finite", 1024, 5, 1, true);
  add("grows", 1024, 1999, 1, true);
  add("backs_off", 1024, 5, 1, false);
  add("backs_off_to_the_floor", 1.5, 5, 1, false);
  add("below_the_floor", 0.25, 5, 1, false);  // stays: the floor does not raise
  add("static", 1024, 1999, 1, false, {{"dynamic", false}});
}

}  // namespace

void AddCases_optimizer(std::vector<OpCase>& cases) {
  const size_t first = cases.size();
  AddSgd(cases);
  AddAdam(cases);
  AddRmsprop(cases);
  AddAdagrad(cases);
  AddLion(cases);
  AddNadam(cases);
  AddLamb(cases);
  AddRows(cases);
  AddMovingAverage(cases);
  AddGradientSum(cases);
  AddLowUpdates(cases, first);
  AddGradStats(cases);
  AddStatsOfSquares(cases);
  AddLossScale(cases);
}

}  // namespace halftone::testing
