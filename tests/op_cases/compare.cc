#include <cmath>

#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

// Small whole numbers, so that equality happens often.
OpInput Few(const Shape& shape) {
  OpInput input = Frozen(Reals(shape, -2, 2));
  input.gen.kind = InputGen::Kind::kInts;
  return input;
}

void AddComparisons(std::vector<OpCase>& cases, const std::string& op) {
  const auto add = [&](const std::string& variant, OpInput a, OpInput b) {
    cases.push_back(NoGradient(Case(op, variant, {std::move(a), std::move(b)})));
  };
  add("one", Few({1}), Few({1}));
  add("31", Few({31}), Few({31}));
  add("33", Few({33}), Few({33}));
  add("scalar", Few({3, 5}), Few({}));
  add("outer", Few({5, 1}), Few({1, 6}));
  add("rank4", Few({2, 16, 1, 3}), Few({2, 16, 1, 3}));
  cases.back().channels_last = true;
  add("empty", Few({0, 2}), Few({2}));
  add("i64", Whole(DType::kI64, {4, 9}, -2, 2), Whole(DType::kI64, {9}, -2, 2));
  add("i32", Whole(DType::kI32, {4, 9}, -2, 2), Whole(DType::kI32, {9}, -2, 2));
  add("u8", Whole(DType::kU8, {4, 9}, 0, 3), Whole(DType::kU8, {9}, 0, 3));
  add("bool", Bools({17}), Bools({17}));
}

}  // namespace

void AddCases_compare(std::vector<OpCase>& cases) {
  for (const char* op : {"equal", "not_equal", "less", "less_equal", "greater", "greater_equal"}) {
    AddComparisons(cases, op);
  }
  for (const char* op : {"logical_and", "logical_or"}) {
    cases.push_back(NoGradient(Case(op, "33", {Bools({33}), Bools({33})})));
    cases.push_back(NoGradient(Case(op, "outer", {Bools({5, 1}), Bools({6})})));
    cases.push_back(NoGradient(Case(op, "empty", {Bools({0}), Bools({0})})));
  }
  cases.push_back(NoGradient(Case("logical_not", "33", {Bools({33})})));
  cases.push_back(NoGradient(Case("logical_not", "scalar", {Bools({})})));
  cases.push_back(NoGradient(Case("isfinite", "33", {Reals({33}, -9, 9)})));
  cases.push_back(
      NoGradient(Case("isfinite", "special",
                      {Fixed({5}, {1, INFINITY, -INFINITY, NAN, 70000})})));  // 70000 is inf in f16
  cases.push_back(NoGradient(Case("isfinite", "empty", {Reals({2, 0})})));
}

}  // namespace halftone::testing
