// halftone_opt --target gives the graph that compiling on such a device gives, for every processor
// that this one can pass for.
#include <cstdlib>
#include <cstring>

#include "halftone/tests/nn/compiled_steps.h"
#include "halftone/tests/programs/start.h"

namespace halftone::testing {
namespace {

TEST(HalftoneOptTarget, IsTheDeviceOfThatName) {
  int steps = 0;
  CompileSteps(Device::Cpu(), [&steps](const std::string& traced, const std::string& compiled,
                                       const std::string& target) {
    const Result run = Start("tools/halftone_opt", traced + " --pipeline --target=" + target);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_EQ(run.out, compiled) << target;
    ++steps;
  });
  EXPECT_EQ(steps, 12);
}

TEST(HalftoneOptTarget, OtherProcessorsToo) {
  for (const char* processor : {"HALFTONE_SIMD=scalar", "HALFTONE_SIMD=avx2",
                                "HALFTONE_BF16=widened", "HALFTONE_BF16=native"}) {
    const Result run =
        Start("tests/test_programs", "--gtest_filter=HalftoneOptTarget.IsTheDeviceOfThatName",
              std::string("export ") + processor + ";");
    EXPECT_EQ(run.status, 0) << processor << "\n" << run.output;
  }
}

}  // namespace
}  // namespace halftone::testing
