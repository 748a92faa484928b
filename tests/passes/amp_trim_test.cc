// trim-amp-islands: byte counts by hand, and islands that stay.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/report.h"
#include "halftone/passes/amp/trim_amp_islands.h"
#include "halftone/passes/amp/verify_amp_dtypes.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tests/passes/amp_test_util.h"

namespace halftone::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

AmpRun Trimmed(const std::string& text) {
  AmpRun run = RunAmp(text);
  EXPECT_TRUE(run.status.ok()) << run.status;
  run.context.stats.clear();
  absl::StatusOr<bool> changed = RunPass(*passes::MakeTrimAmpIslands(), &run);
  EXPECT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(*changed) << "at least the marker goes";
  EXPECT_EQ(passes::FindMarker(*run.graph, "amp"), nullptr);
  EXPECT_TRUE(passes::VerifyAmpDTypes(*run.graph).ok());
  return run;
}

// A small product scales a large parameter: in bf16, %s and %p (64x64) are cast, 2 * 6 * 4096
// bytes; in f32 only %m is, 6 * 64.
std::string Scaled(const std::string& amp) {
  return "graph @g(%x: f32[1,4]) { amp() {" + amp + R"(}
    %w = variable "w" {} : f32[4,64]
    %p = variable "p" {} : f32[64,64]
    %m = matmul(%x, %w)
    %s = mul(%m, %p)
    return %s
  })";
}

TEST(TrimAmpIslands, DropsAnIslandWhoseCastsCostMore) {
  AmpRun run = Trimmed(Scaled("dtype=bf16"));
  EXPECT_EQ(run.reason("s"),
            "f32: trimmed: in bf16 casts would move 49152 bytes instead of 384 to save 16512");
  EXPECT_EQ(run.dtype("m"), "bf16");
  EXPECT_THAT(run.casts(), ElementsAre("%m -> f32", "%w -> bf16", "%x -> bf16"));
  EXPECT_EQ(run.context.stats["trimmed_nodes"], 1);
}

TEST(TrimAmpIslands, ThePolicyCanTurnItOff) {
  AmpRun run = Trimmed(Scaled("dtype=bf16, trim=false"));
  EXPECT_EQ(run.dtype("s"), "bf16");
}

TEST(TrimAmpIslands, NeverTouchesWhatTheUserForced) {
  EXPECT_EQ(Trimmed(Scaled("dtype=bf16, infer=[\"s\"]")).dtype("s"), "bf16");
  EXPECT_EQ(Trimmed(Scaled("dtype=bf16, allow=[\"mul\"]")).dtype("s"), "bf16");
}

TEST(TrimAmpIslands, KeepsAnIslandBetweenMatmuls) {
  AmpRun run = Trimmed(AmpText("dtype=bf16", R"(
    %m = matmul(%x, %w)
    %r = relu(%m)
    %t = tanh(%r)
    %n = matmul(%t, %v)
    return %n)"));
  EXPECT_EQ(run.dtype("r"), "bf16");
  EXPECT_EQ(run.dtype("t"), "bf16");
  EXPECT_EQ(run.context.stats["islands"], 1);
  EXPECT_EQ(run.context.stats["trimmed_islands"], 0);
}

TEST(TrimAmpIslands, KeepsATrailingIsland) {
  // In: nothing; out: one cast either way. The island saves bytes.
  AmpRun run = Trimmed(AmpText("dtype=bf16", "%m = matmul(%x, %w) %t = tanh(%m) return %t"));
  EXPECT_EQ(run.dtype("t"), "bf16");
  EXPECT_THAT(run.casts(), Contains("%t -> f32"));
  EXPECT_THAT(run.casts(), Not(Contains("%m -> f32")));
}

TEST(TrimAmpIslands, WithoutMarkerNothingHappens) {
  AmpRun run;
  run.graph = ParseGraph("graph @g(%x: f32[4]) { %t = tanh(%x) return %t }");
  absl::StatusOr<bool> changed = RunPass(*passes::MakeTrimAmpIslands(), &run);
  ASSERT_TRUE(changed.ok());
  EXPECT_FALSE(*changed);
}

TEST(AmpReport, CountsBytesByHand) {
  AmpRun run = Trimmed(Scaled("dtype=bf16"));
  const passes::AmpReport report = passes::MakeAmpReport(*run.graph);
  ASSERT_EQ(report.rows.size(), 2u);
  EXPECT_EQ(report.rows[0].node, "m");
  EXPECT_EQ(report.rows[0].dtype, DType::kBF16);
  EXPECT_EQ(report.rows[0].bytes_saved, 2 * (4 + 4 * 64 + 64)) << "read and written once each";
  EXPECT_EQ(report.rows[0].casts, 3);
  EXPECT_EQ(report.rows[0].cast_bytes, 6 * (4 + 4 * 64 + 64));
  EXPECT_EQ(report.rows[1].node, "s");
  EXPECT_EQ(report.rows[1].casts, 0);
  EXPECT_EQ(report.low_nodes, 1);
  EXPECT_EQ(report.f32_nodes, 1);
  EXPECT_EQ(passes::Summary(report), "1 of 2 nodes in 16 bit, 3 casts move 1.9 KiB, 648 B saved");
}

TEST(AmpReport, TextHoldsTheReasons) {
  AmpRun run = Trimmed(AmpText("dtype=f16", "%m = matmul(%x, %w) %e = exp(%m) return %e"));
  const passes::AmpReport report = passes::MakeAmpReport(*run.graph);
  const std::string text = passes::ToText(report);
  EXPECT_THAT(text, ::testing::StartsWith("node  dtype  class  saved  casts"));
  EXPECT_THAT(text, ::testing::HasSubstr("\nm     f16    allow  96 B   3 (288 B)  allowed: "));
  EXPECT_THAT(text, ::testing::HasSubstr("\ne     f32    deny   -      -          denied: "));
}

TEST(AmpReport, OfAGraphWithoutDecisionsIsEmpty) {
  auto graph = ParseGraph("graph @g(%x: f32[4]) { %t = tanh(%x) return %t }");
  EXPECT_TRUE(passes::MakeAmpReport(*graph).rows.empty());
}

TEST(VerifyAmpDTypes, SeesPlantedFaults) {
  auto fresh = [] {
    return RunAmp(AmpText("dtype=bf16", "%m = matmul(%x, %w) %e = exp(%m) return %e"));
  };
  auto message = [](const AmpRun& run) {
    absl::Status status = passes::VerifyAmpDTypes(*run.graph);
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    return Message(status);
  };
  AmpRun wide_input = fresh();
  ir::Node* m = wide_input.graph->FindNode("m");
  m->set_input(0, m->input(0).node->input(0));
  EXPECT_EQ(message(wide_input),
            "verify-amp-dtypes: matmul(%m), decided bf16: input 0 is f32; expected bf16");

  AmpRun low_reader = fresh();
  low_reader.graph->FindNode("e")->set_input(0, low_reader.node("m").output());
  EXPECT_EQ(message(low_reader),
            "verify-amp-dtypes: exp(%e), decided f32: input 0 is bf16; expected f32");

  AmpRun twice = fresh();
  const ir::Node& cast = *twice.node("m").input(0).node;
  ir::Node* copy = twice.graph->AddNode(&cast.op(), cast.inputs(), cast.attrs(),
                                        {cast.output_type()}, "again", "");
  copy->provenance = cast.provenance;
  EXPECT_EQ(message(twice), "verify-amp-dtypes: cast(%again) is a second cast of %x to bf16");
}

}  // namespace
}  // namespace halftone::testing
