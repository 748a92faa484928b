// sum mean max argmax, broadcast_to and sum_to_shape.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

using Ints = std::vector<int64_t>;

struct Reduced {
  const char* name;
  Shape x;
  Ints axes;
  bool keepdim;
};

std::vector<Reduced> Reductions() {
  return {{"one", {1}, {0}, false},
          {"31", {31}, {0}, false},
          {"33", {33}, {}, false},
          {"scalar", {}, {}, false},
          {"rows", {5, 33}, {1}, false},
          {"rows_kept", {5, 33}, {1}, true},
          {"columns", {33, 5}, {0}, false},
          {"negative_axis", {3, 4, 5}, {-1}, false},
          {"negative_kept", {3, 4, 5}, {-2}, true},
          {"two_axes", {3, 4, 5}, {0, 2}, false},
          {"unsorted_axes", {3, 4, 5}, {2, 0}, true},
          {"mixed_signs", {3, 4, 5}, {-1, 1}, false},
          {"all_kept", {3, 4, 5}, {}, true},
          {"image", {2, 3, 4, 5}, {0, 2, 3}, false},
          {"extent_one", {3, 1, 5}, {1}, false},
          {"empty_result", {0, 4}, {1}, false}};
}

void AddReductions(std::vector<OpCase>& cases) {
  for (const Reduced& r : Reductions()) {
    const ir::Attributes attrs = {{"axes", r.axes}, {"keepdim", r.keepdim}};
    cases.push_back(Case("sum", r.name, {Reals(r.x)}, attrs));
    cases.push_back(Case("mean", r.name, {Reals(r.x)}, attrs));
    cases.push_back(Case("max", r.name, {Distinct(r.x)}, attrs));
  }
  const ir::Attributes over_none = {{"axes", Ints{0}}};
  cases.push_back(Case("sum", "over_none", {Reals({0, 4})}, over_none));
  cases.push_back(NoGradient(Case("mean", "over_none", {Reals({0, 4})}, over_none)));
  // The absorbed cast: 16-bit in, f32 out.
  const ir::Attributes wide = {{"axes", Ints{0}}, {"out", std::string("f32")}};
  cases.push_back(Case("sum", "out_f32", {Reals({65, 9})}, wide));
  cases.push_back(Case("mean", "out_f32", {Reals({65, 9})}, wide));
  // Long enough for a running 16-bit sum to stall.
  cases.push_back(NoGradient(Case("sum", "long", {Reals({3, 4097}, 0, 1)}, {{"axes", Ints{1}}})));
  cases.push_back(NoGradient(Case("mean", "long", {Reals({3, 4097}, 0, 1)}, {{"axes", Ints{1}}})));
  for (DType dtype : {DType::kI64, DType::kI32, DType::kU8}) {
    const ir::Attributes attrs = {{"axes", Ints{1}}};
    cases.push_back(NoGradient(Case("sum", Name(dtype), {Whole(dtype, {3, 7}, 0, 30)}, attrs)));
    cases.push_back(NoGradient(Case("max", Name(dtype), {Whole(dtype, {3, 7}, 0, 30)}, attrs)));
  }
}

void AddArgmax(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, OpInput x, int64_t axis, bool keepdim) {
    cases.push_back(NoGradient(
        Case("argmax", variant, {std::move(x)}, {{"axis", axis}, {"keepdim", keepdim}})));
  };
  add("one", Distinct({1}), 0, false);
  add("rows", Distinct({5, 33}), 1, false);
  add("columns_kept", Distinct({31, 5}), 0, true);
  add("middle", Distinct({3, 4, 5}), -2, false);
  add("empty_result", Distinct({0, 4}), 1, false);
  OpInput tied = Reals({6, 9}, 0, 2);
  tied.gen.kind = InputGen::Kind::kInts;
  add("ties", tied, 1, false);
  add("i64", Whole(DType::kI64, {4, 7}, -3, 3), 1, false);
}

void AddBroadcasts(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& narrow, const Shape& wide) {
    const Ints narrow_ints(narrow.dims().begin(), narrow.dims().end());
    const Ints wide_ints(wide.dims().begin(), wide.dims().end());
    cases.push_back(Case("broadcast_to", variant, {Reals(narrow)}, {{"shape", wide_ints}}));
    cases.push_back(Case("sum_to_shape", variant, {Reals(wide)}, {{"shape", narrow_ints}}));
  };
  add("same", {3, 4}, {3, 4});
  add("from_scalar", {}, {3, 5});
  add("row", {33}, {7, 33});
  add("column", {7, 1}, {7, 31});
  add("middle", {2, 1, 3}, {2, 4, 3});
  add("outer_axes", {4, 1}, {2, 4, 3});
  add("ones_in_front", {3}, {1, 1, 3});
  add("image", {3, 1, 1}, {2, 3, 4, 5});
  add("to_empty", {1, 4}, {0, 4});
  cases.push_back(Case("sum_to_shape", "out_f32", {Reals({65, 9})},
                       {{"shape", Ints{9}}, {"out", std::string("f32")}}));
  cases.push_back(NoGradient(
      Case("sum_to_shape", "i64", {Whole(DType::kI64, {5, 3}, -9, 9)}, {{"shape", Ints{3}}})));
  cases.push_back(NoGradient(Case("broadcast_to", "bool", {Bools({3})}, {{"shape", Ints{2, 3}}})));
}

}  // namespace

void AddCases_reduction(std::vector<OpCase>& cases) {
  AddReductions(cases);
  AddArgmax(cases);
  AddBroadcasts(cases);
}

}  // namespace halftone::testing
