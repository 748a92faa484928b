#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

struct Pair {
  const char* name;
  Shape a, b;
};

// Every way in which two shapes broadcast.
std::vector<Pair> Pairs() {
  return {{"one", {1}, {1}},
          {"31", {31}, {31}},
          {"33", {33}, {33}},
          {"scalars", {}, {}},
          {"scalar_right", {3, 5}, {}},
          {"scalar_left", {}, {3, 5}},
          {"row", {7, 33}, {33}},
          {"row_left", {33}, {7, 33}},
          {"column", {7, 5}, {7, 1}},
          {"column_left", {7, 1}, {7, 5}},
          {"outer", {5, 1}, {1, 6}},
          {"outer_missing_axis", {5, 1}, {6}},
          {"middle", {2, 1, 3}, {2, 4, 3}},
          {"both_sides", {1, 4, 1}, {2, 1, 3}},
          {"ones", {1, 1}, {1}},
          {"empty", {0}, {0}},
          {"empty_by_broadcast", {3, 0}, {3, 1}}};
}

void AddReal(std::vector<OpCase>& cases, const std::string& op, double lo, double hi) {
  // Offset ranges, so that no two elements of a and b tie.
  const auto add = [&](const std::string& variant, const Shape& a, const Shape& b) {
    cases.push_back(Case(op, variant, {Distinct(a, lo, hi), Distinct(b, lo * 0.97, hi * 0.98)}));
  };
  for (const Pair& pair : Pairs()) add(pair.name, pair.a, pair.b);
  add("rank4", {2, 3, 4, 5}, {2, 3, 4, 5});
  cases.back().channels_last = true;
  add("per_channel", {2, 3, 4, 5}, {3, 1, 1});
  cases.back().channels_last = true;
  add("blocks", {2, 32, 1, 2}, {2, 32, 1, 2});
  cases.back().channels_last = true;
  add("per_channel_of_blocks", {2, 32, 1, 2}, {32, 1, 1});
  cases.back().channels_last = true;
  add("blocks_and_image", {2, 16, 3, 2}, {2, 1, 3, 2});
  cases.back().channels_last = true;
}

void AddInteger(std::vector<OpCase>& cases, const std::string& op) {
  const auto add = [&](DType dtype, double lo) {
    cases.push_back(NoGradient(Case(op, Concat(Name(dtype), "_row"),
                                    {Whole(dtype, {3, 33}, lo, 100), Whole(dtype, {33}, lo, 9)})));
  };
  add(DType::kI64, -100);
  add(DType::kI32, -100);
  add(DType::kU8, 0);
}

}  // namespace

void AddCases_binary(std::vector<OpCase>& cases) {
  for (const char* op : {"add", "sub", "mul", "maximum", "minimum"}) {
    AddReal(cases, op, -2, 2);
    AddInteger(cases, op);
  }
  AddReal(cases, "div", 0.5, 3);
  AddReal(cases, "pow", 0.5, 3);

  // Ties give each operand half: the difference quotient across a tie is half too, as the operand
  // is the larger on one side only.
  const std::vector<double> a = {1, -2, 0.5, 3}, b = {1, -2, 0.25, 4};
  cases.push_back(Case("maximum", "ties", {Fixed({4}, a), Fixed({4}, b)}));
  cases.push_back(Case("minimum", "ties", {Fixed({4}, a), Fixed({4}, b)}));
  cases.push_back(Case("pow", "negative_base",
                       {Fixed({4}, {-2, -0.5, -1.5, -3}), Frozen(Fixed({4}, {2, 3, -1, 1}))}));
}

}  // namespace halftone::testing
