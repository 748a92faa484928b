// The programs as a user starts them: exit status, and what they say.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <string>

#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

class HalftoneDump : public ::testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_) << "graph @two(%x: f32[64,64], %w: f32[64,64]) {\n"
                            "  %h = matmul(%x, %w)\n"
                            "  %e = exp(%h)\n"
                            "  amp() {dtype=bf16}\n"
                            "  return %e\n"
                            "}\n";
  }
  // Of this test: others run beside it.
  const TempDir dir_;
  const std::string path_ = dir_.Path("graph.txt");
};

TEST_F(HalftoneDump, PrintsTheGraph) {
  const Result run = Start("tools/halftone_dump", path_);
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_TRUE(Has(run, "%h = matmul(%x, %w) : f32[64,64]")) << run.output;
}

TEST_F(HalftoneDump, DrawsIt) {
  const Result run = Start("tools/halftone_dump", path_ + " --format=dot");
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(run.output.rfind("digraph \"two\" {", 0), 0u) << run.output;
  EXPECT_TRUE(Has(run, "matmul %h")) << run.output;
}

TEST_F(HalftoneDump, WritesJson) {
  const Result run = Start("tools/halftone_dump", path_ + " --format=json");
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_TRUE(Has(run, "\"op\": \"matmul\"")) << run.output;
}

TEST_F(HalftoneDump, TabulatesDecisions) {
  const Result run = Start("tools/halftone_dump", path_ + " --amp");
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_TRUE(Has(run, "bf16")) << run.output;
  EXPECT_TRUE(Has(run, "deny")) << run.output;
}

TEST_F(HalftoneDump, TabulatesProductsInEightBits) {
  std::ofstream(path_) << "graph @two(%x: f32[64,64], %w: f32[64,64], %v: f32[64,10]) {\n"
                          "  %h = matmul(%x, %w)\n"
                          "  %o = matmul(%h, %v)\n"
                          "  %s = sum(%o) {axes=[0, 1]}\n"
                          "  backward(%s)\n"
                          "  amp() {dtype=f8e4m3, trim=false}\n"
                          "  return %s\n"
                          "}\n";
  const Result run = Start("tools/halftone_dump", path_ + " --amp");
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_TRUE(Has(run, "h     f8e4m3")) << run.output;
  EXPECT_TRUE(Has(run, "; not f8: columns 10, no multiple of 16")) << run.output;
  EXPECT_TRUE(Has(run, "1 of them on 8-bit operands")) << run.output;
  const Result why = Start("tools/halftone_dump", path_ + " --amp --why h");
  EXPECT_TRUE(Has(why, "scaled operands of 8 bits")) << why.output;
}

TEST_F(HalftoneDump, SaysThatThereAreNoDecisions) {
  std::ofstream(path_) << "graph @g(%x: f32[2]) { %e = exp(%x) return %e }";
  const Result run = Start("tools/halftone_dump", path_ + " --amp");
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(Has(run, path_ + ": no mixed-precision decisions: "
                               "the graph has neither an `amp` marker nor been through "
                               "insert-amp-casts"))
      << run.output;
}

TEST_F(HalftoneDump, RefusesWrongOptions) {
  EXPECT_EQ(Start("tools/halftone_dump", "").status, 2);
  const Result format = Start("tools/halftone_dump", path_ + " --format=xml");
  EXPECT_EQ(format.status, 2);
  EXPECT_TRUE(Has(format, "--format=xml: expected text, dot, json, html or onnx")) << format.output;
  EXPECT_EQ(Start("tools/halftone_dump", path_ + " --amp --format=dot").status, 2);
  EXPECT_EQ(Start("tools/halftone_dump", path_ + " --target=abacus").status, 2);
}

TEST_F(HalftoneDump, ReportsFilesItCannotRead) {
  EXPECT_EQ(Start("tools/halftone_dump", path_ + ".absent").status, 1);
  std::ofstream(path_) << "graph @broken(";
  const Result run = Start("tools/halftone_dump", path_);
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(Has(run, "line 1")) << run.output;
}

TEST(FashionMnist, RefusesWrongOptions) {
  const Result run = Start("examples/fashion_mnist", "--amp=f4");
  EXPECT_EQ(run.status, 2);
  EXPECT_TRUE(Has(run, "--amp: expected off, bf16, f16, f8 or auto")) << run.output;
  EXPECT_EQ(Start("examples/fashion_mnist", "--batch=0").status, 2);
}

TEST(Programs, WrongFlagsEndThemWithStatus2) {
  for (const char* program : {"tools/halftone_dump", "tools/halftone_opt", "tools/halftone_run",
                              "examples/fashion_mnist", "examples/char_gpt", "examples/dcgan",
                              "benchmarks/train_step", "benchmarks/device_kernels"}) {
    Result run = Start(program, "--no_such_flag");
    EXPECT_EQ(run.status, 2) << program;
    EXPECT_TRUE(Has(run, "no_such_flag")) << run.output;
    EXPECT_EQ(Start(program, "--help").status, 0) << program;
  }
  Result run = Start("examples/fashion_mnist", "--batch=many");
  EXPECT_EQ(run.status, 2);
  EXPECT_TRUE(Has(run, "many")) << run.output;
  run = Start("examples/fashion_mnist", "stray");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err, "fashion_mnist: stray: expected flags only\n");
}

TEST(FashionMnist, NamesTheFileThatIsMissing) {
  const Result run = Start("examples/fashion_mnist", "--data=/nowhere");
  EXPECT_EQ(run.status, 1);
  EXPECT_TRUE(Has(run, "/nowhere/train-images-idx3-ubyte")) << run.output;
}

TEST(TrainStep, RefusesWrongOptions) {
  const auto error = [](const std::string& options) {
    const Result run = Start("benchmarks/train_step", options);
    EXPECT_EQ(run.status, 2) << options;
    return run.err;
  };
  EXPECT_EQ(
      error("--workload=nothing"),
      "train_step: --workload: \"nothing\" is unknown; expected one of mlp, fashion_cnn, resnet50, "
      "bert_base, gpt2_small, edsr, ssd512_resnet50\n");
  EXPECT_EQ(error("--workload=bert_base --bare"),
            "train_step: --bare: expected mlp or fashion_cnn\n");
  EXPECT_EQ(error("--amp=f8"), "train_step: --amp is \"f8\"; expected off, bf16 or f16\n");
  for (const char* options : {"--threads=0", "--rounds=0", "--blocks=0", "--steps=-1"}) {
    EXPECT_EQ(
        error(options),
        "train_step: --threads, --rounds, --blocks: expected 1 or more; --steps: 0 or more\n");
  }
}

TEST(TrainStep, RefusesThreadsThatSleep) {
  const char* const kept = std::getenv("OMP_WAIT_POLICY");
  const std::string before = kept == nullptr ? "" : kept;
  setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
  const Result run = Start("benchmarks/train_step", "");
  if (kept == nullptr) {
    unsetenv("OMP_WAIT_POLICY");
  } else {
    setenv("OMP_WAIT_POLICY", before.c_str(), 1);
  }
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err,
            "train_step: OMP_WAIT_POLICY=passive makes a parallel region 70 times slower; unset "
            "it\n");
}

}  // namespace
}  // namespace halftone::testing
