// What passes make of a step for a target is what compiling on such a device makes of it.
#include "halftone/tests/nn/compiled_steps.h"

namespace halftone::testing {
namespace {

// Other processors than this one: HALFTONE_SIMD, HALFTONE_BF16 and HALFTONE_LAYOUT, in tests/programs.
TEST(FixedTargets, AreTheDevicesOfTheirName) {
  for (const Device device : {Device::Cpu(), Device::Reference()}) {
    int steps = 0;
    CompileSteps(device, [&steps](const std::string& traced, const std::string& compiled,
                                  const std::string& target) {
      EXPECT_EQ(LoweredForTarget(traced, target), compiled) << target;
      ++steps;
    });
    EXPECT_EQ(steps, 12);
  }
}

TEST(FixedTargets, MakeDifferentGraphs) {
  CompileStep<Convolutions>(Device::Cpu(), "f16", [](const auto& traced, const auto&, const auto&) {
    const std::string cpu = LoweredForTarget(traced, "cpu-avx2");
    const std::string cuda = LoweredForTarget(traced, "cuda-sm90");
    EXPECT_NE(cpu.find("kept=true"), std::string::npos);
    EXPECT_EQ(cpu.find("group=1"), std::string::npos);
    EXPECT_NE(cuda.find("kept=true"), std::string::npos);
    EXPECT_NE(cuda.find("group=1"), std::string::npos);
    EXPECT_EQ(LoweredForTarget(traced, "reference").find("relayout"), std::string::npos);
  });
}

}  // namespace
}  // namespace halftone::testing
