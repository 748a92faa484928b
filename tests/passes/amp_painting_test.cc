// Each step of painting fires where it should and not beside it. The graphs are small enough to
// paint by hand from the rules in passes/amp/painter.h.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/tests/passes/amp_test_util.h"

namespace halftone::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

AmpRun Painted(const std::string& amp, const std::string& body) {
  AmpRun run = RunAmp(AmpText(amp, body));
  EXPECT_TRUE(run.status.ok()) << run.status;
  return run;
}

TEST(AmpAllow, MatmulTurnsLowAndTheOutputKeepsItsDType) {
  AmpRun run = Painted("dtype=bf16", "%m = matmul(%x, %w) return %m");
  EXPECT_EQ(run.dtype("m"), "bf16");
  EXPECT_THAT(run.reason("m"), ::testing::StartsWith("bf16: allowed: "));
  EXPECT_THAT(run.casts(), ElementsAre("%m -> f32", "%w -> bf16", "%x -> bf16"));
  EXPECT_EQ(run.graph->outputs()[0].value.dtype(), DType::kF32);
}

TEST(AmpAllow, LowOutputsStayLowOnRequest) {
  AmpRun run = Painted("dtype=bf16, low_outputs=true", "%m = matmul(%x, %w) return %m");
  EXPECT_THAT(run.casts(), ElementsAre("%w -> bf16", "%x -> bf16"));
  EXPECT_EQ(run.graph->outputs()[0].value.dtype(), DType::kBF16);
}

TEST(AmpDeny, SpreadsThroughInferUpToAllow) {
  AmpRun run = Painted("dtype=bf16", R"(
    %m = matmul(%x, %w)
    %e = exp(%m)
    %a = mul(%e, %y)
    %b = mul(%a, %y)
    %n = matmul(%b, %v)
    return %n)");
  EXPECT_EQ(run.dtype("m"), "bf16");
  EXPECT_EQ(run.dtype("e"), "f32");
  EXPECT_THAT(run.reason("e"), ::testing::StartsWith("f32: denied: "));
  EXPECT_EQ(run.reason("a"), "f32: denied, because reads e");
  EXPECT_EQ(run.reason("b"), "f32: denied, because reads e via a");
  EXPECT_EQ(run.dtype("n"), "bf16");
}

TEST(AmpDeny, WithoutADeniedNodeTheSameNodesAreLow) {
  AmpRun run = Painted("dtype=bf16", R"(
    %m = matmul(%x, %w)
    %e = tanh(%m)
    %a = mul(%e, %y)
    %b = mul(%a, %y)
    %n = matmul(%b, %v)
    return %n)");
  for (const char* name : {"m", "e", "a", "b", "n"}) EXPECT_EQ(run.dtype(name), "bf16") << name;
  EXPECT_EQ(run.reason("a"), "bf16: between m and n");
}

TEST(AmpDeny, PassesClearNodesThatLeadToInferOnly) {
  AmpRun run = Painted("dtype=bf16", R"(
    %e = exp(%x)
    %r = relu(%e)
    %a = add(%r, %y)
    %t = relu(%e)
    %m = matmul(%t, %w)
    %n = matmul(%a, %v)
    return %m, %n)");
  EXPECT_EQ(run.reason("r"), "f32: denied, because reads e");
  EXPECT_EQ(run.reason("a"), "f32: denied, because reads e via r");
  EXPECT_EQ(run.dtype("t"), "bf16") << "a clear node that leads to allow only";
  EXPECT_EQ(run.reason("t"), "bf16: dtype does not matter, read by m");
}

TEST(AmpDeny, LongChainsNameTheNearest) {
  AmpRun run = Painted("dtype=bf16", R"(
    %e = exp(%x)
    %a1 = add(%e, %y) %a2 = add(%a1, %y) %a3 = add(%a2, %y) %a4 = add(%a3, %y) %a5 = add(%a4, %y)
    return %a5)");
  EXPECT_EQ(run.reason("a5"), "f32: denied, because reads e via a4, a3, a2 and 1 more");
}

TEST(AmpBetween, InferNodesOutsideAPathStayF32InF16) {
  AmpRun run = Painted("dtype=f16", R"(
    %before = tanh(%x)
    %m = matmul(%before, %w)
    %inside = tanh(%m)
    %n = matmul(%inside, %v)
    %after = tanh(%n)
    return %after)");
  EXPECT_EQ(run.dtype("before"), "f32");
  EXPECT_EQ(run.reason("before"), "f32: not between allowed nodes");
  EXPECT_EQ(run.reason("inside"), "f16: between m and n");
  EXPECT_EQ(run.dtype("after"), "f32");
  EXPECT_THAT(run.casts(), ElementsAre("%before -> f16", "%n -> f32", "%v -> f16", "%w -> f16"));
}

TEST(AmpFollow, InBf16InferNodesFollowWhatIsLow) {
  AmpRun run = Painted("dtype=bf16", R"(
    %m = matmul(%x, %w)
    %a = add(%m, %v)
    %t = tanh(%a)
    return %t)");
  EXPECT_EQ(run.reason("a"), "bf16: follows m") << "%v is a parameter";
  EXPECT_EQ(run.reason("t"), "bf16: follows a");
}

TEST(AmpFollow, NotWhereAnInputWouldBeNarrowed) {
  AmpRun run = Painted("dtype=bf16", "%m = matmul(%x, %w) %a = add(%m, %y) return %a");
  EXPECT_EQ(run.dtype("a"), "f32");
}

TEST(AmpClear, FollowsItsInputsAndItsReaders) {
  AmpRun run = Painted("dtype=f16", R"(
    %r = reshape(%x) {shape=[4,4]}
    %m = matmul(%r, %w)
    %p = relu(%m)
    return %p)");
  EXPECT_EQ(run.reason("r"), "f16: dtype does not matter, read by m");
  EXPECT_EQ(run.reason("p"), "f16: dtype does not matter, follows m");
  EXPECT_THAT(run.casts(), ElementsAre("%p -> f32", "%w -> f16", "%x -> f16"));
}

TEST(AmpClear, StaysF32WhereSomethingElseNeedsIt) {
  AmpRun run = Painted("dtype=f16", R"(
    %r = relu(%x)
    %m = matmul(%r, %w)
    return %m, %r)");
  EXPECT_EQ(run.dtype("r"), "f32") << "the caller gets %r";
  EXPECT_THAT(run.casts(), ElementsAre("%m -> f32", "%r -> f16", "%w -> f16"));
}

TEST(AmpGroups, ConcatTakesTheWidestOperand) {
  AmpRun run = Painted("dtype=f16", R"(
    %m = matmul(%x, %w)
    %c = concat(%m, %x) {axis=1}
    %q = slice(%x) {starts=[0,0], limits=[4,4], strides=[1,1]}
    %mask = less(%x, %y)
    %s = where(%mask, %m, %q)
    return %c, %s)");
  EXPECT_EQ(run.dtype("c"), "f32");
  EXPECT_EQ(run.dtype("s"), "f32");
  EXPECT_EQ(run.dtype("q"), "f32");
}

TEST(AmpGroups, ConcatOfLowOperandsIsLow) {
  AmpRun run = Painted("dtype=f16", R"(
    %m = matmul(%x, %w)
    %n = matmul(%x, %v)
    %c = concat(%m, %n) {axis=1}
    return %c)");
  EXPECT_EQ(run.dtype("c"), "f16");
}

TEST(AmpGroups, BetweenAllowedNodesTheWidestOperandStillWins) {
  AmpRun run = Painted("dtype=f16", R"(
    %m = matmul(%x, %w)
    %c = concat(%m, %y) {axis=0}
    %n = matmul(%c, %v)
    return %n)");
  EXPECT_EQ(run.reason("c"), "f32: its operands share a dtype and y is f32");
  EXPECT_THAT(run.casts(), ElementsAre("%c -> f16", "%m -> f32", "%n -> f32", "%v -> f16",
                                       "%w -> f16", "%x -> f16"));
}

// The residual stream of a network that begins with an f32 value: no block rounds the sum of all
// before it, and what reads the sum reads a cast, as in PyTorch's autocast, which promotes.
TEST(AmpRunningSum, StaysF32WhereItBeganInF32) {
  AmpRun run = Painted("dtype=bf16", R"(
    %m = matmul(%x, %w)
    %a = add(%x, %m)
    %t = tanh(%a)
    %n = matmul(%t, %w)
    %b = sub(%a, %n)
    %k = matmul(%b, %v)
    return %k)");
  EXPECT_EQ(run.reason("a"),
            "f32: adds to x, which is f32: a sum that runs on is not rounded at each step");
  EXPECT_EQ(run.reason("b"),
            "f32: adds to a, which is f32: a sum that runs on is not rounded at each step");
  EXPECT_EQ(run.dtype("t"), "bf16") << "its readers are not f32 for that";
  EXPECT_THAT(run.casts(), ElementsAre("%a -> bf16", "%b -> bf16", "%k -> f32", "%m -> f32",
                                       "%n -> f32", "%v -> bf16", "%w -> bf16", "%x -> bf16"));
}

TEST(AmpRunningSum, OfWhatIsSixteenBitIsSixteenBit) {
  AmpRun run = Painted("dtype=bf16", R"(
    %h = matmul(%x, %w)
    %m = matmul(%h, %w)
    %a = add(%h, %m)
    %n = matmul(%a, %v)
    %b = add(%a, %n)
    %k = matmul(%b, %v)
    return %k)");
  EXPECT_EQ(run.dtype("a"), "bf16");
  EXPECT_EQ(run.dtype("b"), "bf16");
}

TEST(AmpRunningSum, AParameterAndWhatIsBroadcastDoNotRaiseIt) {
  AmpRun run = Painted("dtype=bf16", R"(
    %m = matmul(%x, %w)
    %a = add(%m, %v)
    %moved = transpose(%v) {perm=[1,0]}
    %b = add(%a, %moved)
    %row = slice(%y) {starts=[0,0], limits=[1,4], strides=[1,1]}
    %c = add(%b, %row)
    %n = matmul(%c, %w)
    return %n)");
  for (const char* name : {"a", "b", "c"}) EXPECT_EQ(run.dtype(name), "bf16") << name;
}

TEST(AmpRunningSum, WhatMovesItToTheNextSumKeepsItsDigits) {
  AmpRun run = Painted("dtype=bf16", R"(
    %m = matmul(%x, %w)
    %a = add(%x, %m)
    %moved = transpose(%a) {perm=[1,0]}
    %other = transpose(%a) {perm=[1,0]}
    %n = matmul(%moved, %w)
    %b = add(%moved, %n)
    %k = matmul(%b, %other)
    return %k)");
  EXPECT_EQ(run.reason("moved"), "f32: moves what is f32 to the sum b");
  EXPECT_EQ(run.dtype("b"), "f32");
  EXPECT_EQ(run.dtype("other"), "bf16") << "leads to no sum";
}

TEST(AmpRunningSum, TheUserMayHaveItInSixteenBit) {
  AmpRun run = Painted("dtype=bf16, infer=[\"add\"]", R"(
    %m = matmul(%x, %w)
    %a = add(%x, %m)
    %n = matmul(%a, %w)
    return %n)");
  EXPECT_EQ(run.dtype("a"), "bf16");
}

TEST(AmpObservers, ReadWhatThereIs) {
  AmpRun run = Painted("dtype=f16", R"(
    %m = matmul(%x, %w)
    %low = argmax(%m) {axis=1}
    %wide = argmax(%x) {axis=1}
    return %low, %wide)");
  EXPECT_EQ(run.dtype("low"), "f16");
  EXPECT_EQ(run.dtype("wide"), "f32") << "a cast could make ties";
  EXPECT_THAT(run.casts(), ElementsAre("%w -> f16", "%x -> f16"));
}

TEST(AmpObservers, ComparisonsWithAnInexactConstantWiden) {
  AmpRun run = Painted("dtype=f16", R"(
    %m = matmul(%x, %w)
    %half = constant {value=dense<f32[]>(0.5)}
    %tenth = constant {value=dense<f32[]>(0.1)}
    %exact = less(%m, %half)
    %inexact = less(%m, %tenth)
    return %exact, %inexact)");
  EXPECT_EQ(run.dtype("exact"), "f16");
  EXPECT_EQ(run.dtype("inexact"), "f32");
}

TEST(AmpKernels, NodesWithoutKernelStayF32) {
  class NoConcat : public ir::Target {
   public:
    const std::string& name() const override { return name_; }
    bool HasKernel(const std::string& op, DType) const override { return op != "tanh_grad"; }
    bool CanRun(const std::string&) const override { return true; }
    DType PreferredLowType(std::string*) const override { return DType::kF16; }
    std::string WhyNoF8() const override { return "toy has no 8-bit products"; }
    bool PrefersChannelsLast() const override { return false; }
    bool RoundsBiases() const override { return false; }
    bool KeepsLowWeights() const override { return false; }
    bool PacksWeights() const override { return false; }
    bool RunsOnAfterFault() const override { return false; }
    bool FusesElementwise() const override { return false; }
    std::string WhyWidened(const ir::Node&) const override { return ""; }
    bool JoinsUpdates(const std::string&) const override { return false; }
    ir::KernelTraits TraitsOf(const ir::Node&) const override { return {}; }

   private:
    std::string name_ = "toy";
  };
  AmpRun run;
  run.graph = ParseGraph(AmpText("dtype=f16, allow=[\"t\"]", R"(
    %m = matmul(%x, %w)
    %t = tanh(%m)
    %n = matmul(%t, %v)
    return %n)"));
  NoConcat target;
  run.context.target = &target;
  ASSERT_TRUE(passes::MakeInsertAmpCasts()->Run(*run.graph, run.context).ok());
  EXPECT_EQ(run.dtype("m"), "f16");
  EXPECT_EQ(run.reason("t"), "f32: toy has no f16 kernel for tanh_grad") << "a gradient op";
  EXPECT_THAT(run.context.notes, ElementsAre(HasSubstr("t stays f32: toy has no f16 kernel")));
}

TEST(AmpLoss, TheLossIsF32) {
  AmpRun run = Painted("dtype=bf16", R"(
    %m = matmul(%x, %w)
    %l = slice(%m) {starts=[0,0], limits=[1,1], strides=[1,1]}
    %s = reshape(%l) {shape=[]}
    backward(%s))");
  EXPECT_EQ(run.reason("s"), "f32: denied: it is the loss");
  EXPECT_EQ(run.dtype("l"), "bf16");
}

TEST(AmpNothing, WithoutAllowedNodesThereIsNoCast) {
  AmpRun run = Painted("dtype=f16", "%e = exp(%x) %r = relu(%e) %a = add(%r, %y) return %a");
  EXPECT_THAT(run.casts(), IsEmpty());
  EXPECT_EQ(run.dtype("e"), "f32");
}

}  // namespace
}  // namespace halftone::testing
