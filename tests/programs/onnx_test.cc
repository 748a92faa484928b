// ONNX models through the tools.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;

class OnnxTools : public ::testing::Test {
 protected:
  // y = relu(x - 1)
  std::string Graph() {
    return dir_.Write("graph.txt",
                      "graph @g(%x: f32[2]) {\n"
                      "  %one = constant {value=splat<f32[]>(1)} : f32[]\n"
                      "  %d = sub(%x, %one)\n"
                      "  %y = relu(%d)\n"
                      "  return %y\n"
                      "}\n");
  }
  testing::TempDir dir_;
};

TEST_F(OnnxTools, AGraphGoesOutAndRuns) {
  const Result dump = Start("tools/halftone_dump", Graph() + " --format=onnx");
  ASSERT_EQ(dump.status, 0) << dump.err;
  const std::string model = dir_.Write("model.onnx", dump.out);
  const Result run = Start("tools/halftone_run", model + " --feed x=arange:2");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "y f32[2] = [0, 0]\n");
  const Result shown = Start("tools/halftone_dump", model);
  EXPECT_THAT(shown.out, HasSubstr("%y = relu(%d) : f32[2]"));
  const Result lowered = Start("tools/halftone_opt", model + " --pipeline");
  EXPECT_EQ(lowered.status, 0) << lowered.err;
}

TEST_F(OnnxTools, NameWhatIsWrong) {
  const std::string graph = dir_.Write("w.txt",
                                       "graph @g() {\n"
                                       "  %w = variable \"w\" : f32[2]\n"
                                       "  return %w\n"
                                       "}\n");
  Result result = Start("tools/halftone_dump", graph + " --format=onnx");
  EXPECT_EQ(result.status, 1);
  EXPECT_THAT(result.err, HasSubstr("variable \"w\" has no value; expected one"));
  const std::string broken = dir_.Write("broken.onnx", "\x08\x08");
  result = Start("tools/halftone_run", broken);
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(result.err,
            "halftone_run: " + broken + ": onnx: 2 bytes that are not a whole ONNX model\n");
  result = Start("tools/halftone_run", broken + " --dim batch");
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.err, "halftone_run: --dim batch: expected NAME=EXTENT\n");
}

}  // namespace
}  // namespace halftone::testing
