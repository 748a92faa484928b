// The profile of halftone_run: a trace and a table.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"
#include "halftone/tools/support/peak.h"

namespace halftone::testing {
namespace {

using Json = nlohmann::json;

class HalftoneRunProfile : public ::testing::Test {
 protected:
  void SetUp() override {
    WriteBytes(dir_.Path("graph.txt"),
               "graph @small(%x: f32[64,32], %w: f32[32,16]) {\n"
               "  %h = matmul(%x, %w)\n"
               "  %y = add(%h, %h) @\"layer\"\n"
               "  return %y\n"
               "}\n");
    run_ = Start("tools/halftone_run", dir_.Path("graph.txt") +
                                           " --feed x=ones,w=ones --steps 3 --out " + dir_.path() +
                                           " --profile " + dir_.Path("trace.json"));
    ASSERT_EQ(run_.status, 0) << run_.err;
  }
  const TempDir dir_;
  Result run_;
};

TEST_F(HalftoneRunProfile, TraceHasAnEventForEachStepAndKernel) {
  const Json trace = Json::parse(Bytes(dir_.Path("trace.json")), nullptr, false);
  ASSERT_TRUE(trace.is_object());
  std::vector<Json> steps, kernels;
  for (const Json& event : trace.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 1);
    if (event.at("ph") == "M") {
      EXPECT_EQ(event.at("args").at("name"), "graph @small");
      continue;
    }
    EXPECT_EQ(event.at("ph"), "X");  // a complete event: start and duration, in microseconds
    (event.at("cat") == "step" ? steps : kernels).push_back(event);
  }
  ASSERT_EQ(steps.size(), 3u);
  ASSERT_EQ(kernels.size(), 6u);
  for (size_t i = 0; i < kernels.size(); ++i) {
    const Json& event = kernels[i];
    EXPECT_EQ(event.at("name"), i % 2 == 0 ? "%h" : "%y");
    EXPECT_EQ(event.at("cat"), i % 2 == 0 ? "matmul" : "add");
    EXPECT_EQ(event.at("args").at("type"), "f32[64,16]");
    EXPECT_THAT(event.at("args").at("kernel").get<std::string>(), ::testing::StartsWith("cpu:"));
    // Inside its step, after the kernel before it.
    const Json& step = steps[i / 2];
    const double start = event.at("ts"), end = start + event.at("dur").get<double>();
    EXPECT_GE(start, step.at("ts").get<double>());
    EXPECT_LE(end, step.at("ts").get<double>() + step.at("dur").get<double>());
    if (i % 2 == 1) {
      EXPECT_GE(start, kernels[i - 1].at("ts").get<double>());
    }
  }
  // Two flops for each of 64 * 16 sums of 32 products; both operands and the result, 4 bytes each.
  EXPECT_EQ(kernels[0].at("args").at("flops"), 2 * 64 * 16 * 32);
  EXPECT_EQ(kernels[0].at("args").at("bytes"), 4 * (64 * 32 + 32 * 16 + 64 * 16));
  EXPECT_EQ(kernels[1].at("args").at("flops"), 64 * 16);
  EXPECT_EQ(kernels[1].at("args").at("scope"), "layer");
}

TEST_F(HalftoneRunProfile, TableHasALineForEachKernel) {
  const std::string table = run_.out.substr(run_.out.find("node "));
  const std::string number = " +[0-9]+\\.[0-9]", share = number + " %";
  const std::string kernel = "%. +cpu:[^\n]+" + number + share + number + number + share + "\n";
  const std::string all = "all +2 kernels" + number + " +100.0 %\n";
  EXPECT_THAT(table,
              ::testing::MatchesRegex("node +kernel +us +share +GB/s +GFLOP/s +of peak\n" + kernel +
                                      kernel + all + "step +median of 3" + number + "\n"));
}

// A product of 8 by 8 matrices takes 1,024 operations, over 3 * 256 bytes in f32.
TEST(Peak, TheLargerShareCounts) {
  ir::Graph graph;
  ir::Builder b(&graph);
  const ir::Expr x = b.Input("x", {DType::kF32, Shape{8, 8}});
  const ir::Node& product = *b.Op("matmul", {x, x}).value().node;
  tools::Peak peak;
  EXPECT_EQ(peak.Share(product, 1), 0);
  peak.flops[DType::kF32] = 4096;
  EXPECT_EQ(peak.Share(product, 1), 0.25);
  EXPECT_EQ(peak.Share(product, 0.5), 0.5);
  peak.bytes = 1536;
  EXPECT_EQ(peak.Share(product, 1), 0.5);
  EXPECT_EQ(peak.Share(product, 0), 0);
}

TEST_F(HalftoneRunProfile, CannotBeWrittenAnywhere) {
  const Result run =
      Start("tools/halftone_run", dir_.Path("graph.txt") + " --feed x=ones,w=ones --profile " +
                                      dir_.Path("no/trace.json"));
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, ::testing::HasSubstr("no/trace.json"));
}

}  // namespace
}  // namespace halftone::testing
