// The edge cases of mixed precision passes: what other frameworks got wrong once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/tests/passes/amp_test_util.h"

namespace halftone::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

AmpRun Amp(const std::string& text) {
  AmpRun run = RunAmp(text);
  EXPECT_TRUE(run.status.ok()) << run.status;
  return run;
}

// Every reader's view: node name -> dtype of the decision and the dtypes of its inputs.
std::map<std::string, std::string> Wiring(const ir::Graph& graph) {
  std::map<std::string, std::string> wiring;
  for (const auto& node : graph.nodes()) {
    std::string text = node->amp.decided
                           ? Concat(Name(node->amp.dtype), " (", node->amp.reason, ")")
                           : std::string("undecided");
    for (ir::Value v : node->inputs()) {
      text += Concat(" %", v.node->name(), ":", v.index, " ", v.type());
    }
    wiring[node->name()] = text;
  }
  return wiring;
}

constexpr char kBlock[] = R"(
  %e = embedding(%w, %ids)
  %q = matmul(%e, %w)
  %k = matmul(%e, %v) {transpose_b=true}
  %s = softmax(%q)
  %mask = greater(%q, %k)
  %c = where(%mask, %q, %k)
  %r = relu(%c)
  %d = add(%r, %e)
  %x1 = exp(%d)
  %m = maximum(%d, %x1)
  %o = matmul(%m, %w)
  %p = mul(%o, %s)
  %best = argmax(%p) {axis=1}
  %loss = mean(%p) {axes=[]}
  backward(%loss)
  return %p, %best, %loss)";

TEST(AmpEdgeCases, RunningTwiceChangesNothing) {
  for (const char* dtype : {"f16", "bf16"}) {
    AmpRun run = Amp(AmpText(Concat("dtype=", dtype), kBlock));
    const auto once = Wiring(*run.graph);
    EXPECT_THAT(run.casts(), ::testing::Not(IsEmpty()));
    absl::StatusOr<bool> again = RunPass(*passes::MakeInsertAmpCasts(), &run);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_FALSE(*again);
    EXPECT_EQ(Wiring(*run.graph), once);
  }
}

TEST(AmpEdgeCases, NodeOrderDoesNotMatter) {
  for (const char* dtype : {"f16", "bf16"}) {
    const std::string text = AmpText(Concat("dtype=", dtype), kBlock);
    const auto expected = Wiring(*Amp(text).graph);
    for (uint64_t seed = 0; seed < 20; ++seed) {
      AmpRun shuffled = RunAmp(ShuffleNodes(*ParseGraph(text), seed));
      ASSERT_TRUE(shuffled.status.ok()) << shuffled.status;
      EXPECT_EQ(Wiring(*shuffled.graph), expected) << "seed " << seed;
    }
  }
}

TEST(AmpEdgeCases, EveryFloatNodeHasAReason) {
  AmpRun run = Amp(AmpText("dtype=bf16", kBlock));
  for (const auto& node : run.graph->nodes()) {
    if (!node->amp.decided) continue;
    EXPECT_THAT(node->amp.reason, ::testing::StartsWith(Concat(Name(node->amp.dtype), ": ")))
        << node->name();
  }
  EXPECT_EQ(run.dtype("x1"), "f32");
  EXPECT_EQ(run.dtype("q"), "bf16");
}

TEST(AmpEdgeCases, WithoutTheMarkerNothingHappens) {
  AmpRun run;
  run.graph = ParseGraph("graph @g(%x: f32[4,4]) { %m = matmul(%x, %x) return %m }");
  const uint64_t before = run.graph->Hash();
  absl::StatusOr<bool> changed = RunPass(*passes::MakeInsertAmpCasts(), &run);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
  EXPECT_EQ(run.graph->Hash(), before);
}

TEST(AmpEdgeCases, AllDeniedIsANoOp) {
  AmpRun run;
  run.graph = ParseGraph(AmpText("dtype=f16, deny=[\"*\"]", kBlock));
  const uint64_t before = run.graph->Hash();
  absl::StatusOr<bool> changed = RunPass(*passes::MakeInsertAmpCasts(), &run);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
  EXPECT_EQ(run.graph->Hash(), before);
}

TEST(AmpEdgeCases, IntegersBoolsAndDoublesAreNeverCast) {
  AmpRun run = Amp(R"(graph @g(%x: f32[4,4], %d: f64[4,4], %i: i64[4,4], %c: bool[4,4]) {
    amp() {dtype=f16}
    %m = matmul(%x, %x)
    %dd = matmul(%d, %d)
    %ii = add(%i, %i)
    %w = where(%c, %m, %m)
    %g = gather(%m, %i)
    %wide = cast(%m) {to=f64}
    %sum = add(%wide, %dd)
    return %dd, %ii, %w, %g, %sum
  })");
  EXPECT_THAT(run.casts(), ElementsAre("%g -> f32", "%w -> f32", "%x -> f16"));
  for (const auto& node : run.graph->nodes()) {
    if (!passes::IsAmpCast(*node)) continue;
    EXPECT_TRUE(IsFloat(node->input_type(0).dtype)) << node->name();
  }
  EXPECT_EQ(run.node("dd").output_type().dtype, DType::kF64);
  EXPECT_EQ(run.node("wide").input_type(0).dtype, DType::kF16)
      << "a user's cast reads what there is";
}

TEST(AmpEdgeCases, ValuesTheUserMade16BitAreLeftAlone) {
  AmpRun run = Amp(R"(graph @g(%x: f32[4,4], %h: f16[4,4], %b: bf16[4,4]) {
    amp() {dtype=f16}
    %hh = matmul(%h, %h)
    %bb = matmul(%b, %b)
    %m = matmul(%x, %x)
    %u = cast(%x) {to=f16}
    %uu = add(%u, %hh)
    return %hh, %bb, %m, %uu
  })");
  EXPECT_THAT(run.casts(), ElementsAre("%m -> f32", "%x -> f16"));
  EXPECT_EQ(run.dtype("bb"), "undecided");
  EXPECT_EQ(run.node("bb").output_type().dtype, DType::kBF16);
  EXPECT_EQ(run.graph->outputs()[0].value.dtype(), DType::kF16) << "it was f16 before";
}

TEST(AmpEdgeCases, AUsersCastStays) {
  AmpRun run = Amp(AmpText("dtype=f16", R"(
    %m = matmul(%x, %w)
    %c = cast(%m) {to=f16}
    %back = cast(%c) {to=f32}
    %l = mul(%back, %y)
    return %l)"));
  EXPECT_EQ(run.node("c").input(0), run.node("m").output()) << "no detour through f32";
  EXPECT_EQ(run.node("back").output_type().dtype, DType::kF32);
  EXPECT_EQ(run.dtype("l"), "f32");
}

TEST(AmpEdgeCases, ATensorReadByBothPaintsIsCastOnce) {
  AmpRun run = Amp(AmpText("dtype=f16", R"(
    %m = matmul(%x, %w)
    %n = matmul(%m, %w)
    %e = exp(%m)
    %f = exp(%w)
    return %n, %e, %f)"));
  EXPECT_THAT(run.casts(), ElementsAre("%m -> f32", "%n -> f32", "%w -> f16", "%x -> f16"));
}

TEST(AmpEdgeCases, NormStatisticsStayF32) {
  AmpRun run = Amp(R"g(graph @g(%x: f32[2,3,4,4]) {
    amp() {dtype=f16}
    %k = variable "k" {} : f32[3,3,1,1]
    %gamma = variable "gamma" {init="uniform(0.5,1)"} : f32[3]
    %mean = variable "mean" {kind="buffer", trainable=false} : f32[3]
    %c = conv2d(%x, %k)
    %n, %sm, %si, %nm, %nv = batch_norm(%c, %gamma, %mean, %mean, %gamma)
    %c2 = conv2d(%n, %k)
    %s = sqrt(%si)
    commit "mean" = %nm
    return %c2, %s
  })g");
  EXPECT_EQ(run.dtype("n"), "f16");
  EXPECT_EQ(run.node("n").output_type(0).dtype, DType::kF16);
  for (int i = 1; i < 5; ++i) EXPECT_EQ(run.node("n").output_type(i).dtype, DType::kF32);
  EXPECT_EQ(run.node("n").input_type(1).dtype, DType::kF32);
  EXPECT_EQ(run.dtype("s"), "f32");
  EXPECT_THAT(run.casts(), ElementsAre("%c2 -> f32", "%k -> f16", "%x -> f16"));
}

TEST(AmpEdgeCases, EmbeddingCastsRowsAndNotTheTable) {
  AmpRun run = Amp(AmpText("dtype=f16", R"(
    %e = embedding(%w, %ids)
    %m = matmul(%e, %w)
    return %m)"));
  EXPECT_EQ(run.node("e").input(0), run.node("w").output()) << "the table as it is";
  EXPECT_THAT(run.casts(), ElementsAre("%e -> f16", "%m -> f32", "%w -> f16"))
      << "the tied weight is cast for the matmul only";
}

TEST(AmpEdgeCases, ResidualAddBetweenAllowAndDenyIsF32) {
  AmpRun run = Amp(AmpText("dtype=bf16", R"(
    %m = matmul(%x, %w)
    %e = exp(%x)
    %r = add(%m, %e)
    %n = matmul(%r, %w)
    return %n)"));
  EXPECT_EQ(run.reason("r"), "f32: denied, because reads e");
  EXPECT_THAT(run.casts(), Contains("%m -> f32"));
}

TEST(AmpEdgeCases, EmptyTensors) {
  AmpRun run = Amp(R"(graph @g(%x: f32[0,4]) {
    amp() {dtype=f16}
    %none = constant {value=dense<f32[0]>()}
    %w = variable "w" {} : f32[4,4]
    %m = matmul(%x, %w)
    %c = concat(%m, %m) {axis=0}
    %a = mul(%none, %none)
    return %c, %a
  })");
  EXPECT_EQ(run.dtype("m"), "f16");
  EXPECT_EQ(run.dtype("a"), "f32");
}

TEST(AmpEdgeCases, AGradientByALowValueIsOnThePath) {
  const std::string text = AmpText("dtype=bf16", R"(
    %m = matmul(%x, %w)
    %t = tanh(%m)
    %n = matmul(%t, %v)
    %l = sum(%n) {axes=[]}
    %dt, %dw = gradient(%l, %t, %w)
    %e = exp(%dt)
    return %dt, %dw, %e)");
  AmpRun run = Amp(text);
  const ir::Node& marker = run.node("dt");
  EXPECT_EQ(marker.input(1), run.node("t").output()) << "a cast of it is not on the path";
  EXPECT_EQ(marker.output_type(0).dtype, DType::kBF16);
  EXPECT_EQ(marker.output_type(1).dtype, DType::kF32);
  EXPECT_THAT(run.casts(), Contains("%dt -> f32"));
  EXPECT_EQ(run.dtype("e"), "f32");
  const auto once = Wiring(*run.graph);
  EXPECT_FALSE(*RunPass(*passes::MakeInsertAmpCasts(), &run));
  EXPECT_EQ(Wiring(*run.graph), once);
}

TEST(AmpEdgeCases, StateCarriedAcrossStepsStaysF32) {
  AmpRun run = Amp(AmpText("dtype=f16", R"(
    %m = matmul(%x, %w)
    %r = relu(%m)
    commit "v" = %r)"));
  EXPECT_EQ(run.dtype("r"), "f16");
  EXPECT_THAT(run.casts(), Contains("%r -> f32"));
}

}  // namespace
}  // namespace halftone::testing
