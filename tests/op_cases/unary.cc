#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

void AddShapes(std::vector<OpCase>& cases, const std::string& op, double lo, double hi,
               bool gradient = true) {
  const auto add = [&](const std::string& variant, const Shape& shape) {
    cases.push_back(Case(op, variant, {Distinct(shape, lo, hi)}));
    cases.back().gradient = gradient;
  };
  add("one", {1});
  add("31", {31});
  add("33", {33});
  add("scalar", {});
  add("rank3", {3, 1, 7});
  add("rank4", {2, 16, 1, 3});
  cases.back().channels_last = true;
  add("empty", {0});
}

void AddInteger(std::vector<OpCase>& cases, const std::string& op, DType dtype, double lo,
                double hi) {
  cases.push_back(NoGradient(Case(op, Name(dtype), {Whole(dtype, {33}, lo, hi)})));
}

}  // namespace

void AddCases_unary(std::vector<OpCase>& cases) {
  AddShapes(cases, "exp", -5, 5);
  AddShapes(cases, "log", 0.01, 20);
  AddShapes(cases, "expm1", -5, 5);
  AddShapes(cases, "log1p", -0.9, 20);
  AddShapes(cases, "sqrt", 0.01, 20);
  AddShapes(cases, "rsqrt", 0.25, 20);
  AddShapes(cases, "cos", -8, 8);
  AddShapes(cases, "sin", -8, 8);
  AddShapes(cases, "erf", -3, 3);
  AddShapes(cases, "reciprocal", 0.25, 8);
  AddShapes(cases, "neg", -2, 2);
  AddShapes(cases, "abs", -2, 2);
  AddShapes(cases, "square", -3, 3);
  for (const char* op : {"floor", "ceil", "round", "sign"}) AddShapes(cases, op, -9, 9, false);
  // Where exp leaves f16's range on both sides.
  cases.push_back(NoGradient(Case("exp", "far", {Distinct({33}, -20, 12)})));
  for (DType dtype : {DType::kI64, DType::kI32}) {
    AddInteger(cases, "neg", dtype, -1000, 1000);
    AddInteger(cases, "abs", dtype, -1000, 1000);
    AddInteger(cases, "sign", dtype, -1, 1);
    AddInteger(cases, "square", dtype, -1000, 1000);
  }
}

}  // namespace halftone::testing
