// dropout: the CPU's masks and bits, whatever the run, dtype, layout and size.
#include <gtest/gtest.h>

#include "halftone/tests/cuda/direct_run.h"

namespace halftone::testing {
namespace {

OpCase Dropout(const Shape& shape, double p, int64_t seed) {
  return Case("dropout", "masks", {Reals(shape, 1, 2)}, {{"p", p}, {"seed", seed}});
}

TEST(CudaDropout, MasksOfTheCpuInEveryRun) {
  for (uint64_t run : {uint64_t{0}, uint64_t{1}, uint64_t{77}, (uint64_t{5} << 32) + 3}) {
    for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
      for (int64_t n : {1, 3, 31, 33, 1024, 1025, 1027}) {
        ExpectCpuBits(Dropout({n}, 0.4, -9), dtype, {.run_count = run});
      }
    }
  }
}

// Planes of whole groups of four elements and others.
TEST(CudaDropout, ChannelsLast) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16, DType::kF64}) {
    for (const Shape& shape :
         {Shape{2, 3, 4, 5}, Shape{3, 70, 2, 2}, Shape{2, 5, 3, 3}, Shape{1, 33, 1, 1}}) {
      ExpectCpuBits(Dropout(shape, 0.3, 123456789012345), dtype, {.run_count = 8},
                    ir::Layout::kChannelsLast);
    }
  }
}

TEST(CudaDropout, InPlaceAndUnaligned) {
  for (DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    ExpectCpuBits(Dropout({1027}, 0.9, 1), dtype, {.in_place = 0});
    ExpectCpuBits(Dropout({1027}, 0.9, 1), dtype, {.offset = SizeOf(dtype)});
  }
  ExpectCpuBits(Dropout({2, 5, 3, 4}, 0.5, 2), DType::kF16, {.in_place = 0},
                ir::Layout::kChannelsLast);
}

// Different runs and seeds give different masks, or the checks above say nothing.
TEST(CudaDropout, RunsAndSeedsDiffer) {
  const auto graph = BuildCaseGraph(Dropout({1024}, 0.5, 4), DType::kF32);
  const auto other = BuildCaseGraph(Dropout({1024}, 0.5, 5), DType::kF32);
  const std::vector<Tensor> ones = {Tensor::Zeros(DType::kF32, {1024})};
  for (int64_t i = 0; i < 1024; ++i) StoreDouble(ones[0].raw(), DType::kF32, i, 1);
  const Tensor first = RunNative(*CaseNode(*graph), ones, {.run_count = 1});
  EXPECT_FALSE(SameBits(first, RunNative(*CaseNode(*graph), ones, {.run_count = 2})));
  EXPECT_FALSE(SameBits(first, RunNative(*CaseNode(*other), ones, {.run_count = 1})));
  EXPECT_TRUE(SameBits(first, RunNative(*CaseNode(*graph), ones, {.run_count = 1})));
}

}  // namespace
}  // namespace halftone::testing
