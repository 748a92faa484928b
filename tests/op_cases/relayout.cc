// relayout: a case runs in plain layout, where it copies; from layout to layout it runs in the
// golden graphs of assign-layouts and in tests/passes/relayout_test.cc.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {

void AddCases_relayout(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x) {
    cases.push_back(Case("relayout", variant, {Reals(x)}, {{"to", std::string("plain")}}));
  };
  add("to_plain", {2, 3, 4, 5});
  add("to_plain_one_channel", {2, 1, 3, 3});
  add("to_plain_empty", {0, 3, 2, 2});
}

}  // namespace halftone::testing
