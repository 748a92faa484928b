// Axes and extents that do not fit: one error, whatever function they are given to, and no
// arithmetic with them. Values of rank 0 above all, which have no axis.
#include <gtest/gtest.h>

#include <limits>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// The error of a graph of one value.
std::string ErrorOf(const FnGraph::Fn& fn, const std::vector<Tensor>& in) {
  FnGraph graph(fn);
  return std::string(Message(CallStatus(graph, in)));
}

Tensor OfRank(int rank) { return Tensor::Zeros(DType::kF32, Shape(std::vector<int64_t>(rank, 2))); }

struct OfAxis {
  const char* name;
  std::function<Value(const Value& x, const Value& indices, int64_t axis)> call;
};

std::vector<OfAxis> FunctionsOfAnAxis() {
  return {
      {"flatten", [](auto& x, auto&, int64_t axis) { return flatten(x, axis, -1); }},
      {"flatten", [](auto& x, auto&, int64_t axis) { return flatten(x, 0, axis); }},
      {"squeeze", [](auto& x, auto&, int64_t axis) { return squeeze(x, axis); }},
      {"transpose", [](auto& x, auto&, int64_t axis) { return transpose(x, axis, 0); }},
      {"transpose", [](auto& x, auto&, int64_t axis) { return transpose(x, 0, axis); }},
      {"transpose", [](auto& x, auto&, int64_t axis) { return transpose(x, axis, axis); }},
      {"slice", [](auto& x, auto&, int64_t axis) { return slice(x, axis, 0, 1); }},
      {"concat",
       [](auto& x, auto&, int64_t axis) {
         return concat({x, x}, axis);
       }},
      {"permute", [](auto& x, auto&, int64_t axis) { return permute(x, {axis}); }},
      {"sum", [](auto& x, auto&, int64_t axis) { return sum(x, {axis}); }},
      {"mean", [](auto& x, auto&, int64_t axis) { return mean(x, {axis}, true); }},
      {"max", [](auto& x, auto&, int64_t axis) { return max(x, {axis}); }},
      {"argmax", [](auto& x, auto&, int64_t axis) { return argmax(x, axis); }},
      {"flip", [](auto& x, auto&, int64_t axis) { return flip(x, axis); }},
      {"cumsum", [](auto& x, auto&, int64_t axis) { return cumsum(x, axis); }},
      {"prod", [](auto& x, auto&, int64_t axis) { return prod(x, axis); }},
      {"argmin", [](auto& x, auto&, int64_t axis) { return argmin(x, axis); }},
      {"sort", [](auto& x, auto&, int64_t axis) { return sort(x, axis)[0]; }},
      {"argsort", [](auto& x, auto&, int64_t axis) { return argsort(x, axis); }},
      {"topk", [](auto& x, auto&, int64_t axis) { return topk(x, 1, axis)[0]; }},
      {"max_with_indices",
       [](auto& x, auto&, int64_t axis) { return max_with_indices(x, axis)[0]; }},
      {"min_with_indices",
       [](auto& x, auto&, int64_t axis) { return min_with_indices(x, axis)[0]; }},
      {"take_along_dim",
       [](auto& x, auto& at, int64_t axis) { return take_along_dim(x, at, axis); }},
      {"scatter_add", [](auto& x, auto& at, int64_t axis) { return scatter_add(x, axis, at, x); }},
      {"index_select", [](auto& x, auto& at, int64_t axis) { return index_select(x, axis, at); }},
      {"repeat_interleave",
       [](auto& x, auto&, int64_t axis) { return repeat_interleave(x, 2, axis); }},
      {"softmax", [](auto& x, auto&, int64_t axis) { return softmax(x, axis); }},
      {"log_softmax", [](auto& x, auto&, int64_t axis) { return log_softmax(x, axis); }},
      {"gather", [](auto& x, auto& at, int64_t axis) { return gather(x, at, axis); }},
      {"cross_entropy",
       [](auto& x, auto& at, int64_t axis) { return cross_entropy(x, at, {.axis = axis}); }},
  };
}

TEST(Axes, F48_OutOfRangeIsOneErrorOfEveryFunction) {
  for (const OfAxis& f : FunctionsOfAnAxis()) {
    for (int rank = 0; rank <= 2; ++rank) {
      for (int64_t axis : {kLeast, int64_t{-rank - 1}, int64_t{rank}, int64_t{rank + 1}, kMost}) {
        if (rank == 0 && std::string(f.name) == "transpose" && (axis == 0 || axis == -1)) continue;
        const std::string error =
            ErrorOf([&](const Values& in) -> Values { return {f.call(in[0], in[1], axis) + 1.0}; },
                    {OfRank(rank), I64({2}, {0, 1})});
        // flatten, transpose: axis 0 of a 0-d value comes first.
        EXPECT_THAT(error, HasSubstr(Concat(f.name, ": axis "))) << axis;
        EXPECT_THAT(error, HasSubstr(rank == 0 ? " out of range for f32[]; a 0-d value has no axes"
                                     : rank == 1 ? " out of range for f32[2]; expected -1..0"
                                                 : " out of range for f32[2,2]; expected -2..1"))
            << f.name << ", axis " << axis;
      }
    }
  }
}

TEST(Axes, F48_TransposeOfAScalarIsItself) {
  FnGraph graph([](const Values& in) -> Values {
    return {transpose(in[0], 0, 0), transpose(in[0], -1, 0)};
  });
  const std::vector<Tensor> out = Call(graph, {F32({}, {7})});
  ASSERT_EQ(out.size(), 2u);
  for (const Tensor& y : out) {
    EXPECT_EQ(y.shape(), Shape{});
    EXPECT_EQ(y.at(0), 7);
  }
}

TEST(Axes, F48_SliceOfAScalarIsAnError) {
  EXPECT_THAT(
      ErrorOf([](const Values& in) -> Values { return {slice(in[0], 0, 0, 1)}; }, {F32({}, {7})}),
      HasSubstr("slice: axis 0 out of range for f32[]; a 0-d value has no axes"));
}

TEST(Axes, F52_ReductionsOfAScalarSayWhatItIs) {
  for (int64_t axis : {0, -1}) {
    EXPECT_THAT(
        ErrorOf([axis](const Values& in) -> Values { return {sum(in[0], {axis})}; },
                {F32({}, {7})}),
        HasSubstr(Concat("sum: axis ", axis, " out of range for f32[]; a 0-d value has no axes")));
  }
  // No axis is all axes.
  FnGraph graph([](const Values& in) -> Values { return {sum(in[0]), mean(in[0]), max(in[0])}; });
  for (const Tensor& y : Call(graph, {F32({}, {7})})) EXPECT_THAT(y.ToVector(), ElementsAre(7));
}

// Products of extents beyond 64 bits, with and without one left open.
TEST(Axes, ReshapeToExtentsThatOverflow) {
  const int64_t half = int64_t{1} << 32;
  const std::vector<std::vector<int64_t>> shapes = {{-1, half, half},  {half, half},
                                                    {-1, kMost, 2},    {kMost, kMost, -1},
                                                    {-1, kLeast},      {-1, half, half, 0},
                                                    {0, kMost, kMost}, {-1, -1},
                                                    {-1, -2},          {-1, 0},
                                                    {-3, -2},          {-1, kMost}};
  for (const auto& shape : shapes) {
    const std::string error =
        ErrorOf([&](const Values& in) -> Values { return {reshape(in[0], shape)}; }, {OfRank(2)});
    EXPECT_THAT(error, HasSubstr("reshape: ")) << shape[0] << " " << shape[1];
    EXPECT_THAT(ErrorOf([&](const Values& in) -> Values { return {broadcast_to(in[0], shape)}; },
                        {OfRank(2)}),
                HasSubstr("broadcast_to: "));
  }
  EXPECT_THAT(ErrorOf(
                  [&](const Values& in) -> Values {
                    return {reshape(in[0], {-1, half, half})};
                  },
                  {OfRank(2)}),
              HasSubstr("reshape: f32[2,2] to [-1,4294967296,4294967296]; "
                        "expected at most one -1 and 4 elements"));
}

TEST(Axes, SlicesOfAnyNumbers) {
  for (int64_t step : {int64_t{1}, int64_t{3}, kMost}) {
    FnGraph graph([&](const Values& in) -> Values {
      return {slice(in[0], 0, kLeast, kMost, step), slice(in[0], -1, kMost, kLeast, step)};
    });
    const std::vector<Tensor> out = Call(graph, {F32({4}, {1, 2, 3, 4})});
    ASSERT_EQ(out.size(), 2u);
    EXPECT_EQ(out[0].num_elements(), step == 1 ? 4 : step == 3 ? 2 : 1);
    EXPECT_EQ(out[1].num_elements(), 0);
  }
}

TEST(Axes, LayersOfTooManyElements) {
  EXPECT_THAT(
      std::string(Message(Linear(kMost, kMost).status())),
      HasSubstr("Linear: in_features is 9223372036854775807; expected at most 1099511627776"));
  EXPECT_THAT(std::string(Message(Linear(1 << 30, 1 << 30).status())),
              HasSubstr("has more than 1099511627776 elements"));
  EXPECT_THAT(std::string(Message(Conv2d(1 << 30, 1 << 30, 1 << 30).status())),
              HasSubstr("has more than 1099511627776 elements"));
}

TEST(Losses, F17_RegressionLossesDoNotBroadcast) {
  for (const auto& [name, loss] :
       {std::pair("mse_loss", &mse_loss), std::pair("l1_loss", &l1_loss)}) {
    EXPECT_THAT(ErrorOf([&, loss = loss](const Values& in)
                            -> Values { return {loss(in[0], in[1], "mean", Loc::current())}; },
                        {F32({4, 1}, {1, 2, 3, 4}), F32({4}, {1, 2, 3, 4})}),
                HasSubstr(Concat(name, ": b is f32[4]; expected f32[4,1] (type of a)")));
  }
}

}  // namespace
}  // namespace halftone::nn
