// First values of variables: the same bits as the formula, one element after the other.
#include "halftone/graph/runtime/initial_values.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "halftone/core/philox.h"
#include "halftone/core/threads.h"
#include "halftone/tests/support/sanitizers.h"

namespace halftone::runtime {
namespace {

using Kind = ir::Initializer::Kind;

constexpr uint64_t kSeed = 7, kStream = 0x123456789ABCDEF0;

Tensor ByFormula(const ir::Initializer& init, DType dtype, const Shape& shape) {
  Tensor value = Tensor::Empty(dtype, shape);
  PhiloxStream random(kSeed, kStream);
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    double x = init.a;
    if (init.kind == Kind::kUniform) {
      x = init.a + (init.b - init.a) * static_cast<double>(random.Uniform());
    } else if (init.kind == Kind::kNormal) {
      x = init.a + init.b * static_cast<double>(random.Normal());
    }
    value.set(i, x);
  }
  return value;
}

TEST(InitialValues, F19AreTheFormulasBitForBit) {
  const ir::Initializer inits[] = {
      {Kind::kConstant, 0, 0},       {Kind::kConstant, -0.0, 0},     {Kind::kConstant, 0.1, 0},
      {Kind::kUniform, -0.03, 0.03}, {Kind::kUniform, -0.001, 70.1}, {Kind::kNormal, 0, 1},
      {Kind::kNormal, 0.25, 0.02},
  };
  const DType dtypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI32};
  const int threads_before = NumThreads();
  for (const int threads : {1, 2, 3}) {
    SetNumThreads(threads);
    for (const ir::Initializer& init : inits) {
      for (const DType dtype : dtypes) {
        for (const int64_t n : {0, 1, 2, 3, 4, 5, 1023, 1024, 1025, 1030, 50001}) {
          const auto got = MakeInitialValue(init, kSeed, kStream, dtype, {n});
          ASSERT_TRUE(got.ok()) << got.status();
          ASSERT_TRUE(BitEqual(*got, ByFormula(init, dtype, {n})))
              << init.ToString() << " " << Name(dtype) << " " << n << ", " << threads << " threads";
        }
      }
    }
  }
  SetNumThreads(threads_before);
}

int64_t ResidentBytes() {
  int64_t pages = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(InitialValues, F19ZerosTakeNoMemoryBeforeTheyAreTouched) {
  if (testing::kMemoryIsSanitized)
    GTEST_SKIP() << "sanitizers have memory of their own for each byte";
  constexpr int64_t kBytes = int64_t{1} << 28;
  const int64_t before = ResidentBytes();
  const auto zeros =
      MakeInitialValue({Kind::kConstant, 0, 0}, kSeed, kStream, DType::kF32, {kBytes / 4});
  ASSERT_TRUE(zeros.ok()) << zeros.status();
  EXPECT_LT(ResidentBytes() - before, kBytes / 16);
  EXPECT_EQ(zeros->at(kBytes / 8), 0);
}

TEST(InitialValues, SayWhatDidNotFit) {
  SetBufferLimit(BufferStats().live_bytes + 1000);
  for (const double value : {0.0, 1.0}) {
    const auto tensor =
        MakeInitialValue({Kind::kConstant, value, 0}, kSeed, kStream, DType::kF32, {4096});
    EXPECT_EQ(tensor.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(Message(tensor.status()).starts_with("tensor f32[4096]: cannot allocate 16384 "))
        << tensor.status();
  }
  SetBufferLimit(0);
}

}  // namespace
}  // namespace halftone::runtime
