// all_reduce_start all_reduce_wait all_reduce, of one rank: tests/distributed has several.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

using Strings = std::vector<std::string>;

void AddStart(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, std::vector<OpInput> inputs,
                       const std::string& reduction) {
    cases.push_back(NoGradient(Case("all_reduce_start", variant, std::move(inputs),
                                    {{"ranks", int64_t{1}}, {"reduction", reduction}})));
  };
  add("one", {Reals({3, 11})}, "mean");
  add("several", {Reals({33}), Reals({2, 3, 5}), Reals({})}, "sum");
  add("empty", {Reals({0, 5}), Reals({2})}, "mean");
}

void AddWait(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, int64_t elements, Strings shapes) {
    cases.push_back(NoGradient(Case("all_reduce_wait", variant, {Reals({elements})},
                                    {{"ranks", int64_t{1}}, {"shapes", std::move(shapes)}})));
  };
  add("one", 33, {"[3,11]"});
  add("several", 64, {"[33]", "[2,3,5]", "[]"});
  add("empty", 2, {"[0,5]", "[2]"});
}

void AddNow(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, const std::string& reduction) {
    cases.push_back(
        Case("all_reduce", variant, {Reals(x)}, {{"ranks", int64_t{1}}, {"reduction", reduction}}));
  };
  add("sum", {3, 11}, "sum");
  add("mean", {33}, "mean");
  add("scalar", {}, "mean");
  add("empty", {0, 5}, "sum");
}

}  // namespace

void AddCases_all_reduce(std::vector<OpCase>& cases) {
  AddStart(cases);
  AddWait(cases);
  AddNow(cases);
}

}  // namespace halftone::testing
