// reshape transpose slice slice_grad concat.
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

}  // namespace

void AddCases_movement(std::vector<OpCase>& cases) {
  AddReshape(cases);
  AddDetach(cases);
  AddTranspose(cases);
  AddSlice(cases);
  AddConcat(cases);
}

}  // namespace halftone::testing
