// Constants that vanish or overflow in the low dtype keep their readers f32 and are reported.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/passes/amp/range_lint.h"
#include "halftone/tests/passes/amp_test_util.h"

namespace halftone::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

AmpRun Amp(const std::string& amp, const std::string& body) {
  AmpRun run = RunAmp(AmpText(amp, body));
  EXPECT_TRUE(run.status.ok()) << run.status;
  return run;
}

std::string Problem(const std::string& dense, DType low) {
  auto graph = ParseGraph("graph @g() { %c = constant {value=dense<" + dense + "} return %c }");
  auto problem = passes::RangeProblemOf(*graph->FindNode("c"), low);
  return problem ? problem->text : "";
}

TEST(RangeLint, F16BoundsAreExact) {
  EXPECT_EQ(Problem("f32[]>(65504)", DType::kF16), "");
  EXPECT_EQ(Problem("f32[]>(65519)", DType::kF16), "") << "rounds to 65504";
  EXPECT_EQ(Problem("f32[]>(65520)", DType::kF16), "c = 65520 overflows f16");
  EXPECT_EQ(Problem("f32[]>(6e-08)", DType::kF16), "");
  EXPECT_EQ(Problem("f32[]>(2.9e-08)", DType::kF16), "c = 2.9e-08 vanishes in f16");
  EXPECT_EQ(Problem("f32[]>(-inf)", DType::kF16), "") << "infinity is what was meant";
  EXPECT_EQ(Problem("f32[]>(nan)", DType::kF16), "");
  EXPECT_EQ(Problem("f32[]>(0)", DType::kF16), "");
}

TEST(RangeLint, Bf16HasTheRangeOfF32) {
  EXPECT_EQ(Problem("f32[]>(-1e+09)", DType::kBF16), "");
  EXPECT_EQ(Problem("f32[]>(1e-08)", DType::kBF16), "");
  EXPECT_EQ(Problem("f32[]>(3.4e+38)", DType::kBF16), "c = 3.4e+38 overflows bf16");
}

TEST(RangeLint, OfATensorOneElementOverflowsAllMustVanish) {
  EXPECT_EQ(Problem("f32[3]>(0, 1, -1e+09)", DType::kF16), "c = -1e+09 overflows f16");
  EXPECT_EQ(Problem("f32[3]>(0, 1, 1e-09)", DType::kF16), "");
  EXPECT_EQ(Problem("f32[3]>(0, 1e-08, 1e-09)", DType::kF16), "c = 1e-08 vanishes in f16");
}

// Additive mask of attention scores, on the way to the next matmul.
constexpr char kMask[] = R"(
  %s = matmul(%x, %w)
  %c = constant {value=dense<f32[4]>(0, 0, 0, -1e+09)}
  %m = add(%s, %c)
  %p = softmax(%m)
  %o = matmul(%p, %v)
  return %o)";

TEST(RangeLint, MaskKeepsTheWayToTheNextAllowedNodeF32) {
  AmpRun run = Amp("dtype=f16", kMask);
  EXPECT_EQ(run.reason("m"), "f32: range: c = -1e+09 overflows f16");
  EXPECT_EQ(run.reason("p"), "f32: range, because reads m");
  EXPECT_EQ(run.dtype("o"), "f16");
  EXPECT_THAT(run.context.notes, ElementsAre("m: c = -1e+09 overflows f16; stays f32"));
}

TEST(RangeLint, InBf16TheSameMaskIsFine) {
  AmpRun run = Amp("dtype=bf16", kMask);
  EXPECT_EQ(run.dtype("m"), "bf16");
  EXPECT_EQ(run.dtype("p"), "bf16");
  EXPECT_THAT(run.context.notes, IsEmpty());
}

TEST(RangeLint, ReachesThroughEveryClearNode) {
  AmpRun run = Amp("dtype=f16", R"(
    %s = matmul(%x, %w)
    %c = constant {value=dense<f32[]>(-1e+09)}
    %full = broadcast_to(%c) {shape=[4,4]}
    %mask = less(%x, %y)
    %f = where(%mask, %full, %s)
    %o = matmul(%f, %v)
    return %o)");
  EXPECT_EQ(run.reason("full"), "f32: range: c = -1e+09 overflows f16");
  EXPECT_EQ(run.reason("f"), "f32: range, because reads full");
}

TEST(RangeLint, EpsilonKeepsItsReaderF32) {
  AmpRun run = Amp("dtype=f16", R"(
    %m = matmul(%x, %w)
    %eps = constant {value=dense<f32[]>(1e-08)}
    %a = add(%m, %eps)
    %n = matmul(%a, %v)
    return %n)");
  EXPECT_EQ(run.reason("a"), "f32: range: eps = 1e-08 vanishes in f16");
}

TEST(RangeLint, TheUserMayInsist) {
  AmpRun run = Amp("dtype=f16, allow=[\"m\"]", kMask);
  EXPECT_EQ(run.dtype("m"), "f16");
  EXPECT_THAT(run.context.notes,
              ElementsAre("m: c = -1e+09 overflows f16; runs in 16 bit because the user says so"));
}

TEST(RangeLint, SmallWeightsOfAnAllowedNodeAreOrdinaryRounding) {
  AmpRun run = Amp("dtype=f16", R"(
    %c = constant {value=splat<f32[4,4]>(1e-09)}
    %m = matmul(%x, %c)
    return %m)");
  EXPECT_EQ(run.dtype("m"), "f16");
  AmpRun big = Amp("dtype=f16", R"(
    %c = constant {value=splat<f32[4,4]>(1e+09)}
    %m = matmul(%x, %c)
    return %m)");
  EXPECT_EQ(big.reason("m"), "f32: range: c = 1e+09 overflows f16");
}

}  // namespace
}  // namespace halftone::testing
