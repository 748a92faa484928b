// matmul and linear.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

void AddMatmul(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& a, const Shape& b, bool ta = false,
                       bool tb = false) {
    cases.push_back(
        Case("matmul", variant, {Reals(a), Reals(b)}, {{"transpose_a", ta}, {"transpose_b", tb}}));
  };
  add("one", {1, 1}, {1, 1});
  add("odd", {3, 5}, {5, 7});
  add("row", {1, 33}, {33, 4});
  add("column", {4, 33}, {33, 1});
  add("outer", {5, 1}, {1, 6});
  add("transpose_a", {5, 3}, {5, 7}, true, false);
  add("transpose_b", {3, 5}, {7, 5}, false, true);
  add("transpose_both", {5, 3}, {7, 5}, true, true);
  add("batch", {4, 3, 5}, {4, 5, 2});
  add("batch_transposed", {2, 3, 5, 4}, {2, 3, 6, 5}, true, true);
  add("shared_matrix", {4, 3, 5}, {5, 2});
  add("shared_left", {3, 5}, {4, 5, 2});
  add("broadcast_ones", {2, 1, 3, 4}, {1, 3, 4, 2});
  add("broadcast_transposed", {1, 4, 3}, {5, 2, 4}, true, true);
  add("no_rows", {0, 3}, {3, 4});
  add("no_inner", {2, 0}, {0, 3});
  cases.push_back(NoGradient(Case("matmul", "blocked", {Reals({67, 129}), Reals({129, 70})})));
  cases.push_back(Case("matmul", "out_f32", {Reals({9, 5}), Reals({9, 4})},
                       {{"transpose_a", true}, {"out", std::string("f32")}}));
}

void AddLinear(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, int64_t out) {
    const Shape w{out, x[x.rank() - 1]};
    cases.push_back(Case("linear", variant, {Reals(x), Reals(w)}));
    cases.push_back(Case("linear", variant + "_bias", {Reals(x), Reals(w), Reals({out})}));
  };
  add("matrix", {5, 7}, 3);
  add("one_feature", {5, 1}, 1);
  add("vector", {9}, 4);
  add("sequence", {2, 3, 5}, 4);
  add("no_rows", {0, 5}, 4);
  // The bias stays f32 beside 16-bit operands.
  cases.push_back(Case("linear", "f32_bias", {Reals({6, 17}), Reals({5, 17}), Pinned(Reals({5}))}));
  cases.push_back(NoGradient(
      Case("linear", "blocked_bias", {Reals({64, 130}), Reals({72, 130}), Pinned(Reals({72}))})));
}

}  // namespace

void AddCases_contraction(std::vector<OpCase>& cases) {
  AddMatmul(cases);
  AddLinear(cases);
}

}  // namespace halftone::testing
