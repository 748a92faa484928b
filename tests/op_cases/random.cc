// random_uniform random_normal bernoulli.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {

void AddCases_random(std::vector<OpCase>& cases) {
  using Ints = std::vector<int64_t>;
  const auto add = [&](const std::string& op, const std::string& variant, Ints shape,
                       ir::Attributes attrs) {
    for (DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      attrs.Set("shape", shape);
      attrs.Set("dtype", dtype);
      OpCase c = NoGradient(Case(op, Concat(variant, "_", Name(dtype)), {}, attrs));
      c.dtypes = {DType::kF32};  // of inputs, which there are none of
      cases.push_back(c);
    }
  };
  for (const char* op : {"random_uniform", "random_normal"}) {
    const std::string ends[] = {op == std::string("random_normal") ? "mean" : "low",
                                op == std::string("random_normal") ? "std" : "high"};
    add(op, "vector", {33}, {{"seed", int64_t{7}}});
    add(op, "image", {2, 3, 4, 5},
        {{"seed", int64_t{-12345678901}}, {ends[0], -0.3}, {ends[1], 2.7}});
    add(op, "blocks", {3, 401}, {{"seed", int64_t{1}}, {ends[0], 1e-3}, {ends[1], 3e4}});
    add(op, "scalar", {}, {{"seed", int64_t{3}}});
    add(op, "empty", {0, 3}, {{"seed", int64_t{3}}});
  }
  const auto draw = [&](const std::string& variant, const OpInput& x) {
    cases.push_back(NoGradient(Case("bernoulli", variant, {x}, {{"seed", int64_t{5}}})));
  };
  draw("vector", Reals({33}, 0, 1));
  draw("blocks", Reals({3, 401}, -0.2, 1.2));
  draw("scalar", Reals({}, 0, 1));
  draw("empty", Reals({0, 3}));
}

}  // namespace halftone::testing
