// Arrays into and out of the buffer of a reduction, and the words of faults: against formulas.
#include "halftone/kernels/cuda/ops/all_reduce.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "halftone/core/tensor.h"
#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

using kernels::DeviceRunState;

constexpr DType kSummed[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16};

// x / divisor in f32, or f64 where a dtype is that, rounded once.
Tensor Divided(const Tensor& x, DType to, int divisor) {
  const bool is_wide = x.dtype() == DType::kF64 || to == DType::kF64;
  Tensor y = Tensor::Empty(to, x.shape());
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    y.set(i,
          is_wide ? x.at(i) / divisor : static_cast<float>(x.at(i)) / static_cast<float>(divisor));
  }
  return y;
}

// Converts arrays of these sizes, each at `offset` elements past an address of cudaMalloc.
void ExpectConverted(DType from, DType to, const std::vector<int64_t>& sizes, int divisor,
                     int64_t offset) {
  cuda::ConvertBatch batch{};
  std::vector<Tensor> arrays;
  std::vector<DeviceMemory> sources, targets;
  const auto from_size = static_cast<int64_t>(SizeOf(from)),
             to_size = static_cast<int64_t>(SizeOf(to));
  for (const int64_t size : sizes) {
    arrays.push_back(RandomTensor(from, Shape{size + offset}, static_cast<uint64_t>(size) + 1));
    sources.emplace_back(arrays.back().raw(), arrays.back().num_bytes());
    targets.emplace_back(static_cast<size_t>((size + offset) * to_size));
    const int i = batch.table.count;
    batch.from[i] = static_cast<char*>(sources.back().data()) + offset * from_size;
    batch.to[i] = static_cast<char*>(targets.back().data()) + offset * to_size;
    batch.size[i] = size;
    batch.table.Add(size, batch.kChunk);
  }
  CheckCuda(cuda::LaunchConvert(batch, from, to, divisor, nullptr));
  for (size_t a = 0; a < sizes.size(); ++a) {
    Tensor got = Tensor::Empty(to, arrays[a].shape());
    CheckCuda(targets[a].Read(got.address()));
    const Tensor want = Divided(arrays[a], to, divisor);
    for (int64_t i = offset; i < sizes[a] + offset; ++i) {
      ASSERT_EQ(got.at(i), want.at(i))
          << Name(from) << " to " << Name(to) << ", " << sizes[a] << " elements, element " << i;
    }
  }
}

TEST(AllReduceKernels, ConvertEverySizeBetweenAllDTypes) {
  for (const DType from : kSummed) {
    for (const DType to : kSummed) {
      for (const int divisor : {1, 3}) ExpectConverted(from, to, {1, 31, 33, 0, 257}, divisor, 0);
    }
  }
}

TEST(AllReduceKernels, ConvertWhatIsNotAligned) {
  for (const DType to : kSummed) ExpectConverted(DType::kF32, to, {1, 33, 257}, 2, 1);
}

TEST(AllReduceKernels, ConvertMoreThanABlock) {
  ExpectConverted(DType::kF32, DType::kBF16, {cuda::ConvertBatch::kChunk + 1, 1}, 2, 0);
  ExpectConverted(DType::kF16, DType::kF32, {2 * cuda::ConvertBatch::kChunk}, 1, 0);
}

TEST(AllReduceKernels, AMeanIsFiniteWhereItsSumIsNot) {
  const Tensor x = Tensor::Of(DType::kF32, Shape{2}, {60000, -60000});
  EXPECT_EQ(Divided(x, DType::kF16, 2).at(0), 30000);
  const DeviceMemory source(x.raw(), x.num_bytes());
  DeviceMemory target(4);
  cuda::ConvertBatch batch{};
  batch.from[0] = source.data();
  batch.to[0] = target.data();
  batch.size[0] = 2;
  batch.table.Add(2, batch.kChunk);
  CheckCuda(cuda::LaunchConvert(batch, DType::kF32, DType::kF16, 2, nullptr));
  Tensor got = Tensor::Empty(DType::kF16, x.shape());
  CheckCuda(target.Read(got.address()));
  EXPECT_EQ(got.ToVector(), (std::vector<double>{30000, -30000}));
}

// Tells the faults of all ranks, adds what they tell as the reduction does, and gives what a rank hears.
DeviceRunState Heard(const std::vector<DeviceRunState>& told, DType dtype, DeviceRunState own,
                     int32_t broken = 0) {
  const auto ranks = static_cast<int>(told.size());
  const Shape shape{int64_t{ranks} * cuda::kFaultElements};
  Tensor sum = Tensor::Full(dtype, shape, 0);
  for (int r = 0; r < ranks; ++r) {
    const DeviceArray<DeviceRunState> state(
        std::vector<DeviceRunState>{told[static_cast<size_t>(r)]});
    DeviceMemory words(sum.num_bytes());
    CheckCuda(cuda::LaunchTellFault(words.data(), dtype, r, ranks, state.data(), nullptr));
    Tensor part = Tensor::Empty(dtype, shape);
    CheckCuda(words.Read(part.address()));
    for (int64_t i = 0; i < part.num_elements(); ++i) sum.set(i, sum.at(i) + part.at(i));
  }
  const DeviceMemory words(sum.raw(), sum.num_bytes());
  const DeviceArray<DeviceRunState> state(std::vector<DeviceRunState>{own});
  const DeviceArray<int32_t> is_broken(std::vector<int32_t>{broken});
  CheckCuda(cuda::LaunchHearFault(words.data(), dtype, ranks, is_broken.data(), 9, state.data(),
                                  nullptr));
  return state.Get()[0];
}

DeviceRunState FaultOf(int64_t id, int64_t value, int64_t bound, int64_t position) {
  DeviceRunState state;
  state.fault_id = id;
  state.fault_value = value;
  state.fault_bound = bound;
  state.fault_position = position;
  return state;
}

TEST(AllReduceKernels, TheFaultOfTheLowestRankIsHeardExactly) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  for (const DType dtype : kSummed) {
    std::vector<DeviceRunState> told(200);
    EXPECT_EQ(Heard(told, dtype, {}).fault_id, 0);
    told[150] = FaultOf(3, 1, 2, 3);
    told[131] = FaultOf(1234567890123, -7, kLeast, 255);
    for (const DeviceRunState& own : {DeviceRunState(), FaultOf(3, 1, 2, 3)}) {
      const DeviceRunState heard = Heard(told, dtype, own);
      EXPECT_EQ(heard.fault_rank, 132);
      EXPECT_EQ(heard.fault_id, 1234567890123);
      EXPECT_EQ(heard.fault_value, -7);
      EXPECT_EQ(heard.fault_bound, kLeast);
      EXPECT_EQ(heard.fault_position, 255);
    }
  }
}

TEST(AllReduceKernels, WhatAllHaveHeardIsNotToldOrChangedAgain) {
  DeviceRunState heard = FaultOf(3, 1, 2, 3);
  heard.fault_rank = 2;
  EXPECT_EQ(Heard({heard, heard}, DType::kF32, {}).fault_id, 0);
  const DeviceRunState after = Heard({FaultOf(5, 5, 5, 5), heard}, DType::kF32, heard);
  EXPECT_EQ(after.fault_id, 3);
  EXPECT_EQ(after.fault_rank, 2);
}

TEST(AllReduceKernels, AReductionWithoutResultsFailsTheStep) {
  const DeviceRunState state = Heard({{}, {}}, DType::kF16, {}, /*broken=*/1);
  EXPECT_EQ(state.fault_id, 9);
  EXPECT_EQ(state.fault_rank, -1);
}

}  // namespace
}  // namespace halftone::testing
