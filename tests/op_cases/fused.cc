// Bodies of elementwise ops: every way in which an operand reaches the result, and tiles that rows
// fill, exceed and leave a rest of.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {

void AddCases_fused(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, std::vector<OpInput> inputs,
                       const std::string& body) {
    cases.push_back(Case("fused", variant, std::move(inputs), {{"body", body}}));
  };
  const auto large = [&](const std::string& variant, std::vector<OpInput> inputs,
                         const std::string& body) {
    add(variant, std::move(inputs), body);
    cases.back().gradient = false;  // thousands of differences
  };
  add("one_op", {Reals({31})}, "tanh(%0)");
  add("one_element", {Reals({1}), Reals({1})}, "mul(%0, %1)");
  add("empty", {Reals({0, 3}), Reals({3})}, "mul(%0, %1)");
  add("chain", {Reals({4, 9}), Reals({4, 9})}, "tanh(mul(add(%0, %1), %1))");
  add("tree", {Reals({33}), Reals({33}), Reals({33})}, "sub(tanh(%0), mul(tanh(%1), tanh(%2)))");
  add("scalar_and_row", {Reals({7, 5}), Reals({}), Reals({5})}, "mul(add(%0, %2), %1)");
  add("column_of_one", {Reals({7, 5}), Reals({1, 1})}, "tanh(add(%0, %1))");
  add("numbers", {Reals({33})},
      "leaky_relu(hardtanh(%0) {min_val=-2.5, max_val=inf}) {negative_slope=0.5}");
  cases.back().gradient = false;  // a kink at 0
  add("chosen_formula", {Reals({33})}, "gelu(gelu(%0) {approximate=tanh})");
  add("through_f32", {Reals({3, 11}), Reals({3, 11})}, "mul(cast(%0) {to=f32}, cast(%1) {to=f32})");
  cases.back().gradient = false;  // differences in f64 see the rounding
  add("mask", {Distinct({5, 6}), Distinct({5, 6})}, "where(less(%0, %1), %0, mul(%1, %1))");
  cases.back().gradient = false;  // differences may cross from one branch to the other
  add("channels", {Reals({2, 3, 4, 5}), Reals({2, 3, 4, 5})}, "add(mul(%0, %1), %0)");
  cases.back().channels_last = true;
  add("blocks", {Reals({2, 32, 1, 3}), Reals({2, 32, 1, 3}), Reals({})}, "add(mul(%0, %1), %2)");
  cases.back().channels_last = true;
  large("long", {Reals({3, 4099}), Reals({3, 4099})}, "tanh(add(%0, %1))");
  large("long_rows", {Reals({3, 4099}), Reals({4099})}, "tanh(add(%0, %1))");
  large("short_rows", {Reals({700, 7}), Reals({7}), Reals({1, 7})}, "tanh(mul(add(%0, %1), %2))");
  large("rows_of_a_tile", {Reals({3, 2048}), Reals({2048})}, "tanh(add(%0, %1))");
  large("rows_of_an_image", {Reals({9, 30, 20}), Reals({30, 20})}, "mul(tanh(%0), %1)");
  // Five operands of five each, 31 ops: on a device none makes more results wait for their readers.
  const std::string each = "batch_norm_apply(tanh(%0), tanh(%1), tanh(%2), tanh(%1), tanh(%2))";
  large("most_waiting", {Reals({70}), Reals({70}), Reals({70})},
        "batch_norm_apply(" + each + ", " + each + ", " + each + ", " + each + ", " + each + ")");
  cases.back().dtypes = {DType::kF32};  // that of its numbers
  large("most_inputs", std::vector<OpInput>(12, Reals({2500})),
        "add(add(add(add(%0, %1), add(%2, %3)), add(add(%4, %5), add(%6, %7))), "
        "add(add(%8, %9), add(%10, %11)))");
}

}  // namespace halftone::testing
