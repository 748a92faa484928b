// softmax, log_softmax and their gradients.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {

void AddCases_softmax(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, int64_t axis) {
    const ir::Attributes attrs = {{"axis", axis}};
    cases.push_back(Case("softmax", variant, {Reals(x, -3, 3)}, attrs));
    cases.push_back(Case("log_softmax", variant, {Reals(x, -3, 3)}, attrs));
    // The gradients take any y, not only one that the forward op gives.
    cases.push_back(Case("softmax_grad", variant, {Reals(x, 0, 1), Reals(x)}, attrs));
    cases.push_back(Case("log_softmax_grad", variant, {Reals(x, -3, 0), Reals(x)}, attrs));
  };
  add("one", {1}, 0);
  add("vector", {31}, 0);
  add("rows", {5, 33}, -1);
  add("columns", {33, 5}, 0);
  add("middle", {3, 7, 4}, 1);
  add("image", {2, 5, 3, 4}, 1);
  add("last_of_four", {2, 3, 4, 10}, 3);
  add("one_class", {4, 1}, 1);
  add("no_rows", {0, 4}, 1);
  // One class rules: gradients are nearly 0, and differences would see only rounding.
  for (const char* op : {"softmax", "log_softmax"}) {
    cases.push_back(NoGradient(Case(op, "large_values", {Reals({3, 9}, -80, 80)})));
  }
}

}  // namespace halftone::testing
