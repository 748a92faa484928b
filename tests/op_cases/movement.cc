// reshape transpose slice slice_grad concat flip pad.
#include <limits>

#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

void AddReshape(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, Ints shape) {
    cases.push_back(Case("reshape", variant, {Reals(x)}, {{"shape", std::move(shape)}}));
  };
  add("same", {3, 4}, {3, 4});
  add("flatten", {2, 3, 5}, {30});
  add("split", {33}, {3, 11});
  add("to_scalar", {1, 1}, {});
  add("from_scalar", {}, {1});
  add("empty", {0, 5}, {3, 0});
  cases.push_back(NoGradient(
      Case("reshape", "i64", {Whole(DType::kI64, {6}, -9, 9)}, {{"shape", Ints{2, 3}}})));
}

void AddDetach(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const OpInput& x) {
    cases.push_back(NoGradient(Case("detach", variant, {x})));
  };
  add("matrix", Reals({3, 11}));
  add("scalar", Reals({}));
  add("empty", Reals({0, 5}));
  add("i64", Whole(DType::kI64, {6}, -9, 9));
}

void AddTranspose(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, Ints perm) {
    cases.push_back(Case("transpose", variant, {Reals(x)}, {{"perm", std::move(perm)}}));
  };
  add("identity", {3, 4}, {0, 1});
  add("matrix", {31, 5}, {1, 0});
  add("33", {33, 33}, {1, 0});
  cases.back().gradient = false;  // too many elements to probe for a copy
  add("cycle", {2, 3, 4}, {2, 0, 1});
  add("heads", {2, 5, 3, 4}, {0, 2, 1, 3});
  add("nhwc", {2, 3, 4, 5}, {0, 2, 3, 1});
  add("scalar", {}, {});
  add("empty", {0, 3}, {1, 0});
  cases.push_back(NoGradient(Case("transpose", "bool", {Bools({3, 5})}, {{"perm", Ints{1, 0}}})));
}

void AddSlice(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, Ints starts, Ints limits,
                       Ints strides, const Shape& y) {
    ir::Attributes attrs = {{"starts", starts}, {"limits", limits}, {"strides", strides}};
    cases.push_back(Case("slice", variant, {Reals(x)}, attrs));
    attrs.Set("shape", Ints(x.dims().begin(), x.dims().end()));
    cases.push_back(Case("slice_grad", variant, {Reals(y)}, attrs));
  };
  add("whole", {3, 4}, {0, 0}, {3, 4}, {1, 1}, {3, 4});
  add("inside", {31}, {3}, {17}, {1}, {14});
  add("even", {33}, {0}, {33}, {2}, {17});
  add("odd", {33}, {1}, {33}, {2}, {16});
  add("stride_beyond", {5}, {1}, {5}, {9}, {1});
  add("two_axes", {5, 7}, {1, 2}, {4, 7}, {2, 3}, {2, 2});
  add("nothing", {5, 7}, {2, 0}, {2, 7}, {1, 1}, {0, 7});
  add("image", {2, 3, 4, 5}, {0, 1, 0, 0}, {2, 2, 4, 5}, {1, 1, 2, 2}, {2, 1, 2, 3});
  add("scalar", {}, {}, {}, {}, {});
}

void AddConcat(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, std::vector<Shape> parts, int64_t axis) {
    std::vector<OpInput> inputs;
    for (const Shape& part : parts) inputs.push_back(Reals(part));
    cases.push_back(Case("concat", variant, std::move(inputs), {{"axis", axis}}));
  };
  add("one", {{3}}, 0);
  add("two", {{31}, {2}}, 0);
  add("rows", {{2, 5}, {3, 5}, {1, 5}}, 0);
  add("columns", {{5, 2}, {5, 31}}, 1);
  add("negative", {{2, 3, 2}, {2, 3, 4}}, -1);
  add("channels", {{2, 3, 4, 5}, {2, 1, 4, 5}}, 1);
  add("with_empty", {{2, 3}, {0, 3}, {1, 3}}, 0);
  cases.push_back(NoGradient(Case("concat", "i32",
                                  {Whole(DType::kI32, {3}, -9, 9), Whole(DType::kI32, {2}, -9, 9)},
                                  {{"axis", int64_t{0}}})));
}

void AddFlip(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, Ints axes) {
    cases.push_back(Case("flip", variant, {Reals(x)}, {{"axes", std::move(axes)}}));
  };
  add("vector", {33}, {0});
  add("rows", {5, 7}, {0});
  add("columns", {5, 33}, {-1});
  add("all", {3, 4, 5}, {});
  add("middle", {3, 4, 5}, {1});
  add("two", {2, 3, 4, 5}, {3, 1});
  add("extent_one", {3, 1}, {1});
  add("scalar", {}, {});
  add("empty", {0, 3}, {0, 1});
  cases.push_back(
      NoGradient(Case("flip", "i64", {Whole(DType::kI64, {4, 5}, -9, 9)}, {{"axes", Ints{1}}})));
  cases.push_back(NoGradient(Case("flip", "bool", {Bools({3, 5})}, {{"axes", Ints{0}}})));
}

void AddPad(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x, Ints before, Ints after,
                       const std::string& mode, double value) {
    cases.push_back(Case("pad", variant, {Reals(x)},
                         {{"before", std::move(before)},
                          {"after", std::move(after)},
                          {"mode", mode},
                          {"value", value}}));
  };
  for (const std::string mode : {"constant", "reflect", "replicate"}) {
    add(mode + "_vector", {31}, {3}, {2}, mode, 0);
    add(mode + "_one_side", {5, 7}, {0, 6}, {0, 0}, mode, -1.5);
    add(mode + "_rows", {5, 7}, {2, 0}, {1, 0}, mode, 0.1);
    add(mode + "_image", {2, 3, 4, 5}, {0, 0, 1, 2}, {0, 0, 3, 4}, mode, 0.25);
    add(mode + "_middle", {3, 4, 6}, {0, 3, 0}, {0, 2, 0}, mode, 2);
    add(mode + "_nothing", {3, 4}, {0, 0}, {0, 0}, mode, 1);
    add(mode + "_scalar", {}, {}, {}, mode, 1);
    add(mode + "_no_rows", {0, 3}, {0, 1}, {0, 2}, mode, 1);
    cases.push_back(NoGradient(
        Case("pad", mode + "_i32", {Whole(DType::kI32, {3, 3}, -9, 9)},
             {{"before", Ints{1, 0}}, {"after", Ints{1, 2}}, {"mode", mode}, {"value", -7.0}})));
    cases.push_back(NoGradient(
        Case("pad", mode + "_bool", {Bools({3, 3})},
             {{"before", Ints{1, 0}}, {"after", Ints{1, 2}}, {"mode", mode}, {"value", 1.0}})));
  }
  add("replicate_far", {2, 3}, {0, 7}, {5, 9}, "replicate", 0);
  add("infinite", {3}, {1}, {1}, "constant", -std::numeric_limits<double>::infinity());
  cases.back().gradient = false;  // a difference of infinities
  add("from_nothing", {2, 0}, {0, 1}, {1, 2}, "constant", 3);
}

}  // namespace

void AddCases_movement(std::vector<OpCase>& cases) {
  AddReshape(cases);
  AddDetach(cases);
  AddTranspose(cases);
  AddSlice(cases);
  AddConcat(cases);
  AddFlip(cases);
  AddPad(cases);
}

}  // namespace halftone::testing
