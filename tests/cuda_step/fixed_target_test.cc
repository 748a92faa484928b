// The description of CUDA that tools go by is the device: passes make the same graph for both.
#include "halftone/tests/nn/compiled_steps.h"

namespace halftone::testing {
namespace {

TEST(CudaFixedTarget, IsTheDevice) {
  int steps = 0;
  CompileSteps(Device::Cuda(0), [&steps](const std::string& traced, const std::string& compiled,
                                         const std::string& target) {
    // Cards differ in their name alone.
    ASSERT_EQ(target.rfind("cuda-sm", 0), 0u);
    EXPECT_EQ(LoweredForTarget(traced, "cuda-sm90"), compiled);
    ++steps;
  });
  EXPECT_EQ(steps, 12);
}

}  // namespace
}  // namespace halftone::testing
