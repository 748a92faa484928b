// Norms at sizes that the case tables leave out, and where means are large.
#include "halftone/core/strings.h"
#include "halftone/tests/cuda/check_on_device.h"

namespace halftone::testing {
namespace {

OpInput Stat(const Shape& shape, double lo = -1, double hi = 1) {
  return Pinned(Reals(shape, lo, hi));
}

void CheckNorm(OpCase c, bool f64 = true) {
  if (f64) c.dtypes.push_back(DType::kF64);
  CheckOnDevice(c);
}

void CheckLayerNorm(int64_t rows, int64_t size) {
  CheckNorm(Case("layer_norm", Concat("rows", rows, "x", size),
                 {Reals({rows, size}, -2, 3), Stat({size}, 0.5, 1.5), Stat({size})},
                 {{"axes_count", int64_t{1}}, {"eps", 1e-5}}));
  CheckNorm(Case("layer_norm_grad", Concat("rows", rows, "x", size),
                 {Reals({rows, size}, -2, 3), Reals({rows, size}), Stat({size}, 0.5, 1.5),
                  Stat({rows}), Stat({rows}, 0.5, 1.5)},
                 {{"axes_count", int64_t{1}}}));
}

TEST(LayerNormTest, Sizes) {
  for (int64_t size : {1, 31, 33, 64, 257, 1024, 1025, 5000, 8192}) CheckLayerNorm(5, size);
  for (int64_t rows : {1, 31, 33, 257, 1025}) CheckLayerNorm(rows, 24);
}

void CheckBatchNorm(const Shape& x) {
  const Shape c{x[1]};
  const auto check = [&](OpCase test) {
    test.channels_last = x.rank() == 4;
    CheckNorm(std::move(test));
  };
  check(Case(
      "batch_norm", "test",
      {Reals(x, -2, 3), Stat(c, 0.5, 1.5), Stat(c), Frozen(Stat(c)), Frozen(Stat(c, 0.5, 2))}));
  check(Case("batch_norm_grad", "test",
             {Reals(x, -2, 3), Reals(x), Stat(c, 0.5, 1.5), Stat(c), Stat(c, 0.5, 1.5)}));
  check(Case("batch_norm_inference", "test",
             {Reals(x, -2, 3), Stat(c, 0.5, 1.5), Stat(c), Stat(c), Stat(c, 0.5, 2)}));
}

TEST(BatchNormTest, Sizes) {
  for (int64_t channels : {1, 8, 31, 33, 64, 257}) CheckBatchNorm({3, channels, 5, 7});
  for (int64_t side : {1, 8, 11, 31}) CheckBatchNorm({4, 3, side, side + 1});
  CheckBatchNorm({1025, 16});
  CheckBatchNorm({5000, 3});
  CheckBatchNorm({2, 24, 1025});
}

// The gradient of nothing is 0 for the parameters.
TEST(BatchNormTest, EmptyBatch) {
  const Shape x{0, 4, 3, 3}, c{4};
  CheckOnDevice(Case("batch_norm_grad", "empty",
                     {Reals(x), Reals(x), Stat(c, 0.5, 1.5), Stat(c), Stat(c, 0.5, 1.5)}));
  CheckOnDevice(Case("batch_norm_inference", "empty",
                     {Reals(x), Stat(c), Stat(c), Stat(c), Stat(c, 0.5, 2)}));
}

// x near 10,000 with a deviation of a thousandth of that: f32 holds deviations to four digits, and
// the norm keeps them.
TEST(NormTest, LargeMeansCostNoDigits) {
  for (int64_t size : {33, 1024, 5000}) {
    OpCase layer = Case("layer_norm", "large_mean",
                        {Reals({3, size}, 9990, 10010), Stat({size}, 0.5, 1.5), Stat({size})},
                        {{"axes_count", int64_t{1}}, {"eps", 1e-5}});
    layer.dtypes = {DType::kF32};
    CheckOnDevice(layer);
  }
  for (const Shape& x : {Shape{300, 5}, Shape{6, 8, 11, 12}, Shape{4, 3, 33, 31}}) {
    const Shape c{x[1]};
    OpCase batch = Case("batch_norm", "large_mean",
                        {Reals(x, 9990, 10010), Stat(c, 0.5, 1.5), Stat(c), Frozen(Stat(c)),
                         Frozen(Stat(c, 0.5, 2))});
    batch.channels_last = x.rank() == 4;
    batch.dtypes = {DType::kF32};
    CheckOnDevice(batch);
  }
}

// The first value of each channel lies 10^4 deviations beside the others.
TEST(NormTest, AnOutlierAtTheStartCostsNoDigits) {
  const Shape x{3, 2, 16, 17}, c{2};
  OpCase batch = Case("batch_norm", "outlier",
                      {Reals(x, -1e-2, 1e-2), Stat(c, 0.5, 1.5), Stat(c), Frozen(Stat(c)),
                       Frozen(Stat(c, 0.5, 2))});
  for (const ir::Layout layout : {ir::Layout::kPlain, ir::Layout::kChannelsLast}) {
    std::vector<Tensor> inputs = MakeCaseInputs(batch, DType::kF32);
    for (int64_t channel : {0, 1}) inputs[0].data<float>()[channel * 16 * 17] = 3;
    CheckOnDevice(batch, DType::kF32, inputs, layout);
  }
}

}  // namespace
}  // namespace halftone::testing
