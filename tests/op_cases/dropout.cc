// dropout.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {

void AddCases_dropout(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, double p, int64_t seed) {
    OpCase c = Case("dropout", variant, {Reals(x)}, {{"p", p}, {"seed", seed}});
    c.channels_last = x.rank() == 4;
    cases.push_back(c);
  };
  add("half", {33}, 0.5, 7);
  add("tenth", {5, 33}, 0.1, -12345678901);
  // f32 rounds 0.9 down across a step of 2^-24: the comparison is one of doubles.
  add("nine_tenths", {257}, 0.9, 1);
  add("none", {9}, 0, 1);
  add("all", {9}, 1, 1);
  add("image", {2, 3, 4, 5}, 0.3, 99);
  add("blocks", {2, 32, 3, 3}, 0.3, 5);
  add("scalar", {}, 0.5, 3);
  add("empty", {0, 3}, 0.5, 3);
}

}  // namespace halftone::testing
