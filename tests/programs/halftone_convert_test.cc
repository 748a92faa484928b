// halftone_convert: models converted in files, and run by halftone_run.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "halftone/core/io/npz.h"
#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;

// y = x w^T with w = [1 + 2^-9, ...]: 1 in bf16, which has 8 digits, exact in f16, which has 11.
class HalftoneConvert : public ::testing::Test {
 protected:
  HalftoneConvert() {
    graph_ = dir_.Write("graph.txt",
                        "graph @g(%x: f32[1,2]) {\n"
                        "  %w = variable \"w\" : f32[2,2]\n"
                        "  %y = linear(%x, %w)\n"
                        "  return %y\n"
                        "}\n");
    values_ = dir_.Path("w.npz");
    const Tensor w = Tensor::Full(DType::kF32, {2, 2}, 1 + 0x1p-9);
    EXPECT_TRUE(io::WriteNpz(values_, {{"w", w}}).ok());
  }
  Result Convert(const std::string& options, const std::string& out) {
    return Start("tools/halftone_convert",
                 graph_ + " " + dir_.Path(out) + " --variables " + values_ + " " + options);
  }
  std::string Run(const std::string& model) {
    const Result run = Start("tools/halftone_run", dir_.Path(model) + " --feed x=ones");
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  }
  const TempDir dir_;
  std::string graph_, values_;
};

TEST_F(HalftoneConvert, WritesFoldersThatRun) {
  const Result bf16 = Convert("--amp bf16 --cast_parameters", "bf16");
  ASSERT_EQ(bf16.status, 0) << bf16.err;
  EXPECT_EQ(bf16.out,
            "converted: 1 of 1 nodes in 16 bit, 3 casts move 48 B, 16 B saved\n"
            "1 of 1 variables are stored in 16 bit\n");
  EXPECT_EQ(Run("bf16"), "y f32[1,2] =\n[[2, 2]]\n");
  ASSERT_EQ(Convert("--amp f16 --low_outputs", "f16").status, 0);
  EXPECT_EQ(Run("f16"), "y f16[1,2] =\n[[2.004, 2.004]]\n");
  ASSERT_EQ(Convert("--amp f16 --deny linear", "none").status, 0);
  EXPECT_EQ(Run("none"), "y f32[1,2] =\n[[2.0039062, 2.0039062]]\n");
}

TEST_F(HalftoneConvert, WritesOnnxAndTakesCastsOut) {
  ASSERT_EQ(Convert("--amp bf16 --cast_parameters", "low.onnx").status, 0);
  EXPECT_EQ(Run("low.onnx"), "y f32[1,2] =\n[[2, 2]]\n");
  ASSERT_EQ(Convert("--amp bf16", "low").status, 0);
  const Result removed = Start("tools/halftone_convert",
                               dir_.Path("low") + " " + dir_.Path("again") + " --remove_casts");
  ASSERT_EQ(removed.status, 0) << removed.err;
  EXPECT_EQ(Run("again"), "y f32[1,2] =\n[[2.0039062, 2.0039062]]\n");
}

TEST_F(HalftoneConvert, RefusesWhatDoesNotFit) {
  const std::pair<const char*, const char*> wrong[] = {
      {"--amp f32", "--amp=f32: expected f16 or bf16"},
      {"--remove_casts --amp f16", "--remove_casts: expected no option of a conversion beside it"},
      {"--amp f16 --device gpu", "--device=gpu: expected cpu, reference, cuda or cuda:N"}};
  for (const auto& [options, message] : wrong) {
    const Result run = Convert(options, "out");
    EXPECT_EQ(run.status, 2) << options;
    EXPECT_THAT(run.err, HasSubstr(message));
  }
  const Result unknown = Convert("--amp f16 --deny head/*", "out");
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("convert_model: amp policy: deny \"head/*\" matches no node"));
  const Result step = Start("tools/halftone_convert", dir_.Write("step.txt", kTrainingStep) + " " +
                                                          dir_.Path("out") + " --amp f16");
  EXPECT_EQ(step.status, 1);
  EXPECT_THAT(step.err, HasSubstr("graph @step is a training step; expected one for inference"));
  const Result valueless =
      Start("tools/halftone_convert", graph_ + " " + dir_.Path("out") + " --amp f16");
  EXPECT_EQ(valueless.status, 1);
  EXPECT_THAT(valueless.err, HasSubstr("variable \"w\" has no value; expected one"));
  EXPECT_FALSE(std::filesystem::exists(dir_.Path("out")));
}

}  // namespace
}  // namespace halftone::testing
