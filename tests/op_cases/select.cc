// where and cast.
#include <cmath>

#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

void AddWhere(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& condition, const Shape& a,
                       const Shape& b) {
    cases.push_back(Case("where", variant, {Bools(condition), Reals(a), Reals(b)}));
  };
  add("one", {1}, {1}, {1});
  add("31", {31}, {31}, {31});
  add("33", {33}, {33}, {33});
  add("scalar_condition", {}, {3, 5}, {3, 5});
  add("scalar_values", {3, 5}, {}, {});
  add("scalar_b", {3, 5}, {3, 5}, {});
  add("all_broadcast", {4, 1, 1}, {3, 1}, {5});
  add("column_condition", {7, 1}, {7, 5}, {5});
  add("rank4", {2, 16, 1, 3}, {2, 16, 1, 3}, {2, 16, 1, 3});
  cases.back().channels_last = true;
  add("empty", {0, 3}, {3}, {1, 1});
  cases.push_back(NoGradient(
      Case("where", "i64",
           {Bools({9}), Whole(DType::kI64, {9}, -5, 5), Whole(DType::kI64, {9}, -5, 5)})));
  cases.push_back(NoGradient(Case("where", "bool", {Bools({9}), Bools({9}), Bools({})})));
}

// What is not taken must not show: inf and NaN included.
void AddWhereSpecial(std::vector<OpCase>& cases) {
  OpInput condition = Bools({4});
  condition.gen.kind = InputGen::Kind::kFixed;
  condition.gen.values = {1, 0, 1, 0};
  cases.push_back(NoGradient(
      Case("where", "special",
           {condition, Fixed({4}, {1, NAN, 3, INFINITY}), Fixed({4}, {NAN, 2, -INFINITY, 4})})));
}

void AddCast(std::vector<OpCase>& cases) {
  for (DType to : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                   DType::kU8, DType::kBool}) {
    const ir::Attributes attrs = {{"to", to}};
    const auto add = [&](const std::string& variant, OpInput x) {
      cases.push_back(Case("cast", Concat(variant, "_to_", Name(to)), {std::move(x)}, attrs));
      // Central differences see the rounding of a narrower type, not a slope.
      cases.back().gradient = to == DType::kF64;
    };
    add("33", Reals({33}, 0, 100));
    add("rank4", Reals({2, 16, 1, 3}, 0, 200));
    cases.back().channels_last = true;
    add("empty", Reals({0}));
    if (IsFloat(to)) add("negative", Reals({31}, -100, 100));
    for (DType from : {DType::kI64, DType::kI32, DType::kU8, DType::kBool}) {
      add(Name(from), Whole(from, {17}, 0, from == DType::kBool ? 1 : 200));
      cases.back().gradient = false;
    }
  }
}

}  // namespace

void AddCases_select(std::vector<OpCase>& cases) {
  AddWhere(cases);
  AddWhereSpecial(cases);
  AddCast(cases);
}

}  // namespace halftone::testing
