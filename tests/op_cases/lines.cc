// cumsum prod sort, take_along_dim take_along_dim_grad: along one axis, line by line.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

struct Line {
  const char* name;
  Shape x;
  int64_t axis;
};

std::vector<Line> Lines() {
  return {{"one", {1}, 0},
          {"vector", {33}, 0},
          {"rows", {5, 33}, 1},
          {"columns", {33, 5}, 0},
          {"negative", {3, 4, 5}, -2},
          {"wide", {2, 3, 70}, 1},
          {"extent_one", {3, 1, 5}, 1},
          {"no_lines", {0, 4}, 1},
          {"empty", {3, 0}, 1}};
}

OpInput WholeOf(DType dtype, Shape shape) { return Whole(dtype, std::move(shape), 0, 9); }

void AddSums(std::vector<OpCase>& cases) {
  for (const Line& line : Lines()) {
    for (bool reverse : {false, true}) {
      cases.push_back(Case("cumsum", std::string(line.name) + (reverse ? "_reverse" : ""),
                           {Reals(line.x)}, {{"axis", line.axis}, {"reverse", reverse}}));
    }
    cases.push_back(Case("prod", line.name, {Reals(line.x, 0.5, 1.5)},
                         {{"axis", line.axis}, {"keepdim", line.x.rank() == 3}}));
  }
  for (DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
    const ir::Attributes attrs = {{"axis", int64_t{1}}};
    cases.push_back(NoGradient(Case("cumsum", Name(dtype), {WholeOf(dtype, {3, 40})}, attrs)));
    cases.push_back(NoGradient(Case("prod", Name(dtype), {WholeOf(dtype, {3, 40})}, attrs)));
  }
  // Several rounds of a block, and long enough for a running 16-bit sum to stall.
  cases.push_back(NoGradient(
      Case("cumsum", "long", {Reals({2, 2500}, 0, 1)}, {{"axis", int64_t{1}}, {"reverse", true}})));
  cases.push_back(
      NoGradient(Case("prod", "long", {Reals({2, 2500}, 0.99, 1.01)}, {{"axis", int64_t{1}}})));
}

void AddSort(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, OpInput x, int64_t axis, bool descending,
                       int64_t k) {
    cases.push_back(Case("sort", variant, {std::move(x)},
                         {{"axis", axis}, {"descending", descending}, {"k", k}}));
  };
  for (const Line& line : Lines()) add(line.name, Distinct(line.x), line.axis, false, -1);
  add("descending", Distinct({5, 33}), 1, true, -1);
  add("first", Distinct({5, 33}), 1, true, 7);
  add("first_of_columns", Distinct({33, 5}), 0, false, 3);
  add("none", Distinct({5, 3}), 1, false, 0);
  OpInput tied = Reals({6, 40}, 0, 3);
  tied.gen.kind = InputGen::Kind::kInts;
  for (bool descending : {false, true}) {
    add(descending ? "ties_descending" : "ties", tied, 1, descending, -1);
    cases.back().gradient = false;
    add(descending ? "long_descending" : "long", Reals({2, 2500}), 1, descending, -1);
    cases.back().gradient = false;
    add(descending ? "long_first_descending" : "long_first", Reals({2500, 2}), 0, descending, 90);
    cases.back().gradient = false;
    for (DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
      const OpInput x = Whole(dtype, {2, 1100}, dtype == DType::kU8 ? 0 : -40, 90);
      add(std::string(Name(dtype)) + (descending ? "_descending" : ""), x, 1, descending, -1);
      cases.back().gradient = false;
    }
  }
}

void AddTake(std::vector<OpCase>& cases) {
  // idx: the shape of y.
  const auto add = [&](const std::string& variant, const Shape& x, DType index, const Shape& idx,
                       int64_t axis) {
    const int64_t dim = x[static_cast<int>(axis < 0 ? axis + x.rank() : axis)];
    const OpInput picks = Whole(index, idx, 0, static_cast<double>(dim > 0 ? dim - 1 : 0));
    cases.push_back(Case("take_along_dim", variant, {Reals(x), picks}, {{"axis", axis}}));
    cases.push_back(
        Case("take_along_dim_grad", variant, {Reals(idx), picks}, {{"axis", axis}, {"dim", dim}}));
  };
  add("vector", {31}, DType::kI64, {7}, 0);
  add("repeated", {3}, DType::kI64, {33}, 0);
  add("rows", {5, 33}, DType::kI32, {5, 4}, 1);
  add("columns", {5, 7}, DType::kI64, {9, 7}, 0);
  add("negative", {2, 6, 3}, DType::kI64, {2, 4, 3}, -2);
  add("wide", {2, 6, 70}, DType::kI32, {2, 11, 70}, 1);
  add("no_picks", {6, 3}, DType::kI64, {6, 0}, 1);
  add("no_lines", {0, 3}, DType::kI64, {0, 5}, 1);
  cases.push_back(NoGradient(
      Case("take_along_dim", "u8", {Whole(DType::kU8, {9}, 0, 9), Whole(DType::kI64, {4}, 0, 8)})));
  // Many terms of one sum.
  cases.push_back(NoGradient(Case("take_along_dim_grad", "many",
                                  {Reals({4097, 1}, 0, 1), Whole(DType::kI64, {4097, 1}, 0, 1)},
                                  {{"axis", int64_t{0}}, {"dim", int64_t{2}}})));
}

}  // namespace

void AddCases_lines(std::vector<OpCase>& cases) {
  AddSums(cases);
  AddSort(cases);
  AddTake(cases);
}

}  // namespace halftone::testing
