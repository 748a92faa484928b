#include "halftone/core/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace halftone {
namespace {

TEST(TensorTest, UndefinedByDefault) {
  EXPECT_FALSE(Tensor().defined());
  EXPECT_TRUE(Tensor::Scalar(DType::kF32, 0).defined());
}

TEST(TensorTest, FactoriesFill) {
  EXPECT_EQ(Tensor::Zeros(DType::kI32, Shape{2, 2}).ToVector(), std::vector<double>(4, 0));
  EXPECT_EQ(Tensor::Full(DType::kBF16, Shape{3}, 1.5).ToVector(), std::vector<double>(3, 1.5));
  EXPECT_EQ(Tensor::Scalar(DType::kI64, 7).item(), 7);
  const Tensor t = Tensor::Of(DType::kF16, Shape{2, 2}, {1, 2049, 65520, -0.5});
  EXPECT_EQ(t.ToVector(),
            (std::vector<double>{1, 2048, std::numeric_limits<double>::infinity(), -0.5}));
  EXPECT_EQ(t.TypeString(), "f16[2,2]");
  EXPECT_EQ(t.num_bytes(), 8u);
  const Tensor v = Tensor::FromVector(Shape{2}, std::vector<int64_t>{5, int64_t{1} << 60});
  EXPECT_EQ(v.dtype(), DType::kI64);
  EXPECT_EQ(v.data<int64_t>()[1], int64_t{1} << 60);
}

TEST(TensorTest, EmptyTensors) {
  const Tensor t = Tensor::Zeros(DType::kF32, Shape{0, 3});
  EXPECT_TRUE(t.defined());
  EXPECT_TRUE(t.ToVector().empty());
  EXPECT_TRUE(BitEqual(t, t.To(DType::kF16).To(DType::kF32)));
}

TEST(TensorTest, CopiesShareClonesDoNot) {
  Tensor a = Tensor::Zeros(DType::kF32, Shape{2});
  const Tensor shared = a;
  const Tensor reshaped = a.Reshape(Shape{2, 1});
  const Tensor clone = a.Clone();
  a.set(1, 4);
  EXPECT_EQ(shared.at(1), 4);
  EXPECT_EQ(reshaped.at(1), 4);
  EXPECT_EQ(reshaped.shape(), (Shape{2, 1}));
  EXPECT_EQ(clone.at(1), 0);
}

TEST(TensorTest, ToRoundsOnceAndNeverShares) {
  const Tensor f64 = Tensor::Of(DType::kF64, Shape{2}, {1 + 0x1p-11 + 0x1p-40, 1e-8});
  EXPECT_EQ(f64.To(DType::kF16).at(0), 1 + 0x1p-10);
  EXPECT_EQ(f64.To(DType::kF16).at(1), 0);
  EXPECT_EQ(f64.To(DType::kF32).at(1), static_cast<double>(1e-8F));
  Tensor same = f64.To(DType::kF64);
  same.set(0, 9);
  EXPECT_NE(f64.at(0), 9);
  const Tensor big = Tensor::FromVector(Shape{1}, std::vector<int64_t>{(int64_t{1} << 53) + 1});
  EXPECT_EQ(big.To(DType::kI64).data<int64_t>()[0], (int64_t{1} << 53) + 1);
  EXPECT_EQ(Tensor::Of(DType::kF32, Shape{2}, {-1.5, 0}).To(DType::kBool).ToVector(),
            (std::vector<double>{1, 0}));
}

TEST(TensorTest, BitEqualLooksAtBits) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor a = Tensor::Of(DType::kF32, Shape{2}, {nan, 0.0});
  EXPECT_TRUE(BitEqual(a, a.Clone()));
  EXPECT_FALSE(BitEqual(a, Tensor::Of(DType::kF32, Shape{2}, {nan, -0.0})));
  EXPECT_FALSE(BitEqual(a, a.Reshape(Shape{2, 1})));
  EXPECT_FALSE(
      BitEqual(Tensor::Zeros(DType::kF32, Shape{1}), Tensor::Zeros(DType::kI32, Shape{1})));
  EXPECT_TRUE(BitEqual(Tensor(), Tensor()));
  EXPECT_FALSE(BitEqual(Tensor(), a));
}

TEST(TensorTest, AllocateReportsTheTensor) {
  const int64_t live = BufferStats().live_bytes;
  SetBufferLimit(live + 16);
  const absl::Status status = Tensor::Allocate(DType::kF32, Shape{5}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status), Concat("tensor f32[5]: cannot allocate 20 bytes: ", live,
                                    " are live and the limit is ", live + 16));
  EXPECT_TRUE(Tensor::Allocate(DType::kF32, Shape{4}).ok());
  SetBufferLimit(0);
}

TEST(TensorDeathTest, Misuse) {
  const Tensor t = Tensor::Zeros(DType::kF32, Shape{2});
  EXPECT_DEATH(t.data<double>(), "not the tensor's dtype");
  EXPECT_DEATH(t.item(), "not one element");
  EXPECT_DEATH(t.Reshape(Shape{3}), "element counts differ");
  EXPECT_DEATH(Tensor::Of(DType::kF32, Shape{2}, {1}), "values and shape disagree");
  EXPECT_DEATH(
      {
        SetBufferLimit(1);
        Tensor::Empty(DType::kF32, Shape{2});
      },
      "tensor f32\\[2\\]: cannot allocate 8 bytes");
}

}  // namespace
}  // namespace halftone
