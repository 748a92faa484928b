// Every pair of dtypes on values at the ends of both: the conversions of core, bit for bit.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "halftone/core/convert.h"
#include "halftone/tests/cuda/direct_run.h"

namespace halftone::testing {
namespace {

constexpr DType kAll[] = {DType::kF64, DType::kF32, DType::kF16,  DType::kBF16,   DType::kI64,
                          DType::kI32, DType::kU8,  DType::kBool, DType::kF8E4M3, DType::kF8E5M2};

Tensor ValuesOf(DType dtype) {
  constexpr double kInf = std::numeric_limits<double>::infinity();
  const std::vector<double> reals = {0,
                                     -0.0,
                                     std::nan(""),
                                     kInf,
                                     -kInf,
                                     1e-40,
                                     -1e-45,
                                     6e-8,
                                     2.9e-8,
                                     65504,
                                     65519.99,
                                     65520,
                                     -70000,
                                     447.9,
                                     464,
                                     465,
                                     -57345,
                                     61440,
                                     0.0009765625,
                                     0.0146484375,
                                     1.0625,
                                     1.06250000000001,
                                     1.1875,
                                     1.125,
                                     1.5,
                                     -1.5,
                                     2.5,
                                     254.9,
                                     255.5,
                                     256,
                                     -0.9,
                                     -1,
                                     2147483647,
                                     2147483648.0,
                                     -2147483648.0,
                                     -2147483649.0,
                                     9.2233720368547758e18,
                                     -9.3e18,
                                     1e300,
                                     16777217,
                                     3.4e38,
                                     3.402823669e38,
                                     1.00048828125,
                                     1.0004882812500002,
                                     1.00390625,
                                     1.0039062500000002,
                                     33554433};
  const std::vector<int64_t> whole = {0,
                                      1,
                                      -1,
                                      127,
                                      128,
                                      255,
                                      256,
                                      -129,
                                      2049,
                                      65505,
                                      65519,
                                      65520,
                                      -65520,
                                      16777217,
                                      2147483647,
                                      2147483648,
                                      -2147483648,
                                      -2147483649,
                                      INT64_MAX,
                                      INT64_MIN,
                                      INT64_MAX - 1,
                                      (int64_t{1} << 53) + 1,
                                      (int64_t{1} << 62) + 1,
                                      (int64_t{257} << 54) + 1,
                                      (int64_t{257} << 54),
                                      (int64_t{1} << 61) + (int64_t{1} << 53) + 1};
  // Repeated past a tile and an odd number, so that vectors and tails see them.
  Tensor t = Tensor::Zeros(dtype, {2048 + 37});
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (IsFloat(dtype)) {
      StoreDouble(t.raw(), dtype, i, reals[static_cast<size_t>(i) % reals.size()]);
    } else if (dtype == DType::kBool || dtype == DType::kU8) {
      static_cast<unsigned char*>(t.raw())[i] = static_cast<unsigned char>(i);
    } else {
      StoreInt(t.raw(), dtype, i, whole[static_cast<size_t>(i) % whole.size()]);
    }
  }
  return t;
}

TEST(CudaCast, EveryPairConvertsAsCoreDoes) {
  for (DType from : kAll) {
    const Tensor x = ValuesOf(from);
    for (DType to : kAll) {
      OpInput input = Pinned(Reals(x.shape()));
      input.type.dtype = from;
      const auto graph = BuildCaseGraph(Case("cast", "pair", {input}, {{"to", to}}), DType::kF32);
      const ir::Node& node = *CaseNode(*graph);
      Tensor want = Tensor::Zeros(to, x.shape());
      ConvertElements(x.raw(), from, want.raw(), to, x.num_elements());
      EXPECT_TRUE(SameBits(RunNative(node, {x}), want)) << Name(from) << " to " << Name(to);
      EXPECT_TRUE(SameBits(
          RunNative(node, {x}, {.offset = SizeOf(from) > SizeOf(to) ? SizeOf(from) : SizeOf(to)}),
          want))
          << Name(from) << " to " << Name(to) << ", unaligned";
      if (SizeOf(from) != SizeOf(to)) continue;
      EXPECT_TRUE(SameBits(RunNative(node, {x}, {.in_place = 0}), want))
          << Name(from) << " to " << Name(to) << " in place";
    }
  }
}

}  // namespace
}  // namespace halftone::testing
