// Values whose rounding a reader enlarges are computed in f32: logarithms near 1, divisors near 0,
// differences from 1, and sums that leave f16's range. Entries of the list of what once went wrong
// (F25 and on), with neighbours. Right values are those of the formula.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/tests/passes/amp_test_util.h"
#include "halftone/tests/support/step_runner.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

using ::testing::StartsWith;

// `amp` is what stands in the marker's braces.
StepRunner Compiled(const std::string& inputs, const std::string& amp, const std::string& body) {
  return StepRunner::CompileOrDie("graph @g(" + inputs + ") {\n amp() {" + amp + "}\n" + body +
                                  "\n}\n");
}

Tensor Diagonal(int64_t n, double value) {
  Tensor t = Tensor::Full(DType::kF32, {n, n}, 0);
  for (int64_t i = 0; i < n; ++i) t.set(i * n + i, value);
  return t;
}

const std::string& Reason(const StepRunner& run, const std::string& node) {
  return run.graph().FindNode(node)->amp.reason;
}

TEST(LostDigits, F25TheEntropyOfASoftmaxThatFeedsAMatmul) {
  for (const char* low : {"f16", "bf16"}) {
    StepRunner run =
        Compiled("%q: f32[64,64], %k: f32[64,64], %v: f32[64,64]", Concat("dtype=", low),
                 R"(
      %s = matmul(%q, %k)
      %p = softmax(%s)
      %o = matmul(%p, %v)
      %l = log(%p)
      %pl = mul(%p, %l)
      %t = sum(%pl) {axes=[]}
      %h = neg(%t)
      return o=%o, h=%h)");
    EXPECT_THAT(Reason(run, "p"), StartsWith("f32: denied, because l reads it: near 1 "));
    EXPECT_EQ(Name(run.graph().FindNode("o")->amp.dtype), std::string(low));
    const Tensor one = Diagonal(64, 1);
    auto out = run.StepOrDie({{"q", Diagonal(64, 20)}, {"k", one}, {"v", one}});
    EXPECT_NEAR(out["h"].item(), 1.738e-4, 1.738e-7) << low;
  }
}

TEST(LostDigits, F26TheLogarithmOfOneMinusASigmoid) {
  for (const char* low : {"f16", "bf16"}) {
    StepRunner run = Compiled("%x: f32[2,2], %w: f32[2,2]", Concat("dtype=", low), R"(
      %h = matmul(%x, %w)
      %p = sigmoid(%h)
      %o = matmul(%p, %w)
      %one = constant {value=dense<f32[]>(1)}
      %q = sub(%one, %p)
      %l = log(%q)
      %m = mean(%l) {axes=[]}
      %n = neg(%m)
      return o=%o, n=%n)");
    auto out = run.StepOrDie({{"x", Tensor::Full(DType::kF32, {2, 2}, 10)}, {"w", Diagonal(2, 1)}});
    EXPECT_NEAR(out["n"].item(), 9.9996, 1e-3) << low;
  }
}

TEST(LostDigits, WhatIsLeftOfOneIsReadInF32WithoutALogarithmToo) {
  AmpRun run = RunAmp(AmpText("dtype=bf16", R"(
    %h = matmul(%x, %w)
    %p = sigmoid(%h)
    %t = tanh(%h)
    %one = constant {value=dense<f32[]>(1)}
    %q = sub(%one, %p)
    %u = add(%one, %t)
    %a = matmul(%q, %w)
    %b = matmul(%u, %w)
    return %a, %b)"));
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.reason("p"),
            "f32: denied, because q reads it: "
            "a small difference consists of the rounding of its operands");
  EXPECT_EQ(run.dtype("q"), "f32");
  EXPECT_EQ(run.dtype("t"), "f32");
  EXPECT_EQ(run.dtype("h"), "bf16");
}

TEST(LostDigits, DifferencesThatCannotVanishAndThoseOfWholeNumbersMayBe16Bit) {
  AmpRun run = RunAmp(AmpText("dtype=f16", R"(
    %h = matmul(%x, %w)
    %p = sigmoid(%h)
    %two = constant {value=dense<f32[]>(2)}
    %one = constant {value=dense<f32[]>(1)}
    %q = sub(%two, %p)
    %hide = less(%x, %y)
    %hidden = cast(%hide) {to=f32}
    %shown = sub(%one, %hidden)
    %m = mul(%h, %shown)
    %n = matmul(%m, %w)
    %o = matmul(%q, %w)
    return %n, %o)"));
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.dtype("p"), "f16");
  EXPECT_EQ(run.dtype("q"), "f16");
  EXPECT_EQ(run.dtype("m"), "f16");
}

TEST(LostDigits, F43DivisorsNearZero) {
  const struct {
    const char* formula;
    double x, right;
  } cases[] = {
      {"%q = div(%one, %h)", 1e-5, 100},    {"%q = pow(%h, %minus)", 1e-5, 100},
      {"%q = reciprocal(%h)", 1e-5, 100},   {"%r = relu(%h) %q = div(%one, %r)", 1e-5, 100},
      {"%q = rsqrt(%h)", 1e-9, 31.6227766}, {"%q = log(%h)", 1e-9, -0.0207232658}};
  for (const auto& c : cases) {
    StepRunner run = Compiled("%x: f32[1,1], %w: f32[1,1]", "dtype=f16",
                              Concat(R"(
      %one = constant {value=dense<f32[]>(1)}
      %minus = constant {value=dense<f32[]>(-1)}
      %small = constant {value=dense<f32[]>(0.001)}
      %h = matmul(%x, %w)
      )",
                                     c.formula, R"(
      %s = mul(%q, %small)
      %o = matmul(%s, %w)
      return %o)"));
    auto out = run.StepOrDie({{"x", Tensor::Full(DType::kF32, {1, 1}, c.x)},
                              {"w", Tensor::Full(DType::kF32, {1, 1}, 1)}});
    EXPECT_NEAR(out["0"].at(0), c.right, 1e-3 * std::abs(c.right)) << c.formula;
  }
}

TEST(LostDigits, ADivisorAwayFromZeroMayBe16Bit) {
  AmpRun run = RunAmp(AmpText("dtype=f16", R"(
    %h = matmul(%x, %w)
    %eight = constant {value=dense<f32[]>(8)}
    %d = div(%h, %eight)
    %p = sigmoid(%h)
    %one = constant {value=dense<f32[]>(1)}
    %q = add(%one, %p)
    %e = div(%d, %q)
    %g = matmul(%y, %w)
    %f = div(%e, %g)
    %k = matmul(%e, %w)
    %n = matmul(%f, %w)
    return %k, %n)"));
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.dtype("d"), "f16");
  EXPECT_EQ(run.dtype("q"), "f16");
  EXPECT_EQ(run.dtype("e"), "f16");
  EXPECT_EQ(run.reason("f"),
            "f32: denied: divides by what may be near 0, "
            "where f16 has few digits or none");
  EXPECT_EQ(run.reason("g"),
            "f32: denied, because f reads it: divides by what may be near 0, "
            "where f16 has few digits or none");
}

TEST(LostDigits, F44RowsOfLengthOne) {
  for (const char* formula : {"%n = sqrt(%t) %y = div(%h, %n)", "%n = rsqrt(%t) %y = mul(%h, %n)",
                              "%r = sqrt(%t) %n = reciprocal(%r) %y = mul(%h, %n)",
                              "%e = add(%t, %eps) %n = sqrt(%e) %y = div(%h, %n)"}) {
    for (const char* low : {"f16", "bf16"}) {
      StepRunner run = Compiled("%x: f32[4,256], %w: f32[256,256]", Concat("dtype=", low),
                                Concat(R"(
        %eps = constant {value=dense<f32[]>(1e-6)}
        %h = matmul(%x, %w)
        %s = mul(%h, %h)
        %t = sum(%s) {axes=[1], keepdim=true}
        )",
                                       formula, R"(
        %o = matmul(%y, %w)
        return y=%y, o=%o)"));
      EXPECT_EQ(Name(run.graph().FindNode("t")->amp.dtype), std::string("f32")) << formula;
      auto out =
          run.StepOrDie({{"x", RandomTensor(DType::kF32, {4, 256}, 7)}, {"w", Diagonal(256, 1)}});
      for (int64_t row = 0; row < 4; ++row) {
        double sum = 0;
        for (int64_t i = 0; i < 256; ++i) sum += std::pow(out["y"].at(row * 256 + i), 2);
        EXPECT_NEAR(std::sqrt(sum), 1, 5e-4) << low << " " << formula;
      }
    }
  }
}

// Scores (-23, 0) in both rows, the first hidden by f16's end.
TEST(LostDigits, F27MasksNearTheEndOfF16) {
  for (const char* mask :
       {"%m = constant {value=dense<f32[2,2]>(-65504, -65504, 0, 0)}",
        "%m = constant {value=dense<f32[2,2]>(-40000, -40000, 0, 0)}", "%m = cast(%m16) {to=f32}",
        "%b = cast(%hide) {to=f32} %end = constant {value=dense<f32[]>(-65504)} "
        "%m = mul(%b, %end)"}) {
    StepRunner run = Compiled("%x: f32[2,2], %m16: f16[2,2], %hide: bool[2,2]", "dtype=f16",
                              Concat("%k = variable \"k\" {} : f32[2,2]\n", mask, R"(
      %s = matmul(%x, %k)
      %a = add(%s, %m)
      %p = softmax(%a)
      %o = matmul(%p, %k)
      %l = sum(%o) {axes=[]}
      %dk = gradient(%l, %k)
      return p=%p, dk=%dk)"));
    run.state()["k"] = Diagonal(2, 1);
    auto out = run.StepOrDie({{"x", Tensor::Of(DType::kF32, {2, 2}, {-23, 0, -23, 0})},
                              {"m16", Tensor::Of(DType::kF16, {2, 2}, {-65504, -65504, 0, 0})},
                              {"hide", Tensor::Of(DType::kBool, {2, 2}, {1, 1, 0, 0})}});
    EXPECT_THAT(Reason(run, "a"), StartsWith("f32: range: ")) << mask;
    // e^-23 = 1.0262e-10; f32 has 1/128 at 65504.
    ExpectClose(out["p"], Tensor::Of(DType::kF32, {2, 2}, {1.0262e-10, 1, 1.0262e-10, 1}), 1e-3);
    for (int64_t i = 0; i < 4; ++i) EXPECT_TRUE(std::isfinite(out["dk"].at(i))) << mask;
  }
}

TEST(LostDigits, F33DenyComputesInF32WhateverMadeTheValue) {
  for (const char* wish : {"exp", "e", "*"}) {
    StepRunner run = Compiled("%x: f16[1]", Concat("dtype=f16, deny=[\"", wish, "\"]"),
                              "%e = exp(%x) return %e");
    auto out = run.StepOrDie({{"x", Tensor::Full(DType::kF16, {1}, 12)}});
    EXPECT_EQ(out["0"].dtype(), DType::kF32);
    EXPECT_NEAR(out["0"].at(0), 162754.791, 0.1) << wish;
  }
  StepRunner kept =
      Compiled("%x: f16[1]", "dtype=f16", "%e = exp(%x) : f16[1] keep_f32\n return %e");
  EXPECT_NEAR(kept.StepOrDie({{"x", Tensor::Full(DType::kF16, {1}, 12)}})["0"].at(0), 162754.791,
              0.1);
}

TEST(LostDigits, F33OthersReadWhatTheyRead) {
  AmpRun run = RunAmp(R"(graph @g(%x: f16[2,2]) {
    amp() {dtype=f16, deny=["exp", "s"]}
    %e = exp(%x)
    %s = sqrt(%e)
    %r = relu(%e)
    %m = matmul(%s, %s)
    return %r, %m
  })");
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.node("s").input(0), run.node("e").output()) << "without a rounding between";
  EXPECT_EQ(run.node("r").output_type().dtype, DType::kF16);
  EXPECT_EQ(run.node("m").output_type().dtype, DType::kF16);
  EXPECT_THAT(run.casts(), ::testing::ElementsAre("%e -> f16", "%s -> f16", "%x -> f32"));
  EXPECT_EQ(run.reason("r"), "left alone: reads e in f16, as the user has it");
  const auto again = RunPass(*passes::MakeInsertAmpCasts(), &run);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_FALSE(*again);
}

TEST(LostDigits, F34ToAllowAnEmbeddingIsSaidToChangeNothing) {
  AmpRun run = RunAmp(AmpText("dtype=f16, allow=[\"embedding\"]", R"(
    %e = embedding(%w, %ids)
    %m = matmul(%e, %w)
    return %m)"));
  EXPECT_THAT(
      run.context.notes,
      ::testing::ElementsAre(StartsWith("e: to allow it has no effect: the rows are cast")));
  EXPECT_EQ(run.reason("e"), "f32: a source, cast where it is read in 16 bit");
}

}  // namespace
}  // namespace halftone::testing
