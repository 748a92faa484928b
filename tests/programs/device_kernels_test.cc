// benchmarks/device_kernels: its options, and on the emulated device every one of its cases, each small.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "halftone/tests/programs/start.h"

namespace halftone::testing {
namespace {

std::vector<std::string> LinesThatBegin(const std::string& text, const std::string& with) {
  std::vector<std::string> lines;
  std::istringstream all(text);
  for (std::string line; std::getline(all, line);) {
    if (line.rfind(with, 0) == 0) lines.push_back(line);
  }
  return lines;
}

bool Contains(const std::string& line, const std::string& what) {
  return line.find(what) != std::string::npos;
}

TEST(DeviceKernels, RefusesWrongOptions) {
  const auto error = [](const std::string& options) {
    const Result run = Start("benchmarks/device_kernels", options);
    EXPECT_EQ(run.status, 2) << options;
    EXPECT_EQ(run.out, "") << options;
    return run.err;
  };
  for (const char* options : {"--scale=0", "--scale=1.5", "--scale=nan"}) {
    EXPECT_EQ(error(options), "device_kernels: --scale: expected above 0, at most 1\n");
  }
  EXPECT_EQ(error("--seconds=0"), "device_kernels: --seconds: expected above 0\n");
  EXPECT_EQ(error("--blocks=0"), "device_kernels: --blocks: expected 1 or more\n");
  EXPECT_EQ(error("--device=cpu"), "device_kernels: --device: expected cuda or cuda:N\n");
  EXPECT_EQ(error("--filter=softmin"),
            "device_kernels: --filter: no case has \"softmin\" in its name\n");
}

TEST(DeviceKernels, SaysWhyThereIsNoDevice) {
  const Result run = Start("benchmarks/device_kernels", "--device=cuda:99");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err.rfind("device_kernels: --device: device cuda:99: ", 0), 0u) << run.err;
}

TEST(DeviceKernels, TimesEveryCase) {
  if (HALFTONE_HAS_CUDA_EMULATED == 0) GTEST_SKIP() << "needs a device";
  const Result run = Start("benchmarks/device_kernels", "--scale=1e-4 --blocks=1 --seconds=1000",
                           "HALFTONE_AUTOTUNE=0 OMP_WAIT_POLICY=passive");
  ASSERT_EQ(run.status, 0) << run.output;
  const std::vector<std::string> lines = LinesThatBegin(run.out, "{\"name\": ");
  const auto chosen = std::count_if(lines.begin(), lines.end(), [](const std::string& line) {
    return Contains(line, "\"chosen\": true");
  });
  EXPECT_GT(chosen, 150);
  for (const std::string& line : lines) {
    EXPECT_FALSE(Contains(line, "\"seconds\": 0.000000000") || Contains(line, "nan") ||
                 Contains(line, "inf"))
        << line;
  }
  for (const char* kernel :
       {"cuda:cudnn:conv2d\"", "cuda:native:conv2d\"", "cuda:cublaslt:linear",
        "cuda:native:adam_update", "cuda:cudnn:scaled_dot_product_attention"}) {
    EXPECT_TRUE(Has(run, kernel)) << kernel;
  }
  const std::string count = std::to_string(chosen);
  EXPECT_EQ(
      LinesThatBegin(run.out, count + " cases: " + count + " timed, 0 failed, 0 left out; ").size(),
      1u)
      << run.out.substr(run.out.size() - std::min<size_t>(run.out.size(), 200));
  // A row for each, and the heads of two tables.
  EXPECT_EQ(LinesThatBegin(run.out, "| ").size(), lines.size() + 4);
}

TEST(DeviceKernels, SaysWhatIsLeftOut) {
  if (HALFTONE_HAS_CUDA_EMULATED == 0) GTEST_SKIP() << "needs a device";
  const Result run =
      Start("benchmarks/device_kernels", "--scale=1e-4 --seconds=1e-9 --filter=dropout");
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_TRUE(
      Has(run, "Left out after 1e-09 s: copy f16, dropout f16, dropout f32, dropout/nhwc f16"))
      << run.output;
  EXPECT_TRUE(Has(run, "4 cases: 0 timed, 0 failed, 4 left out; ")) << run.output;
}

}  // namespace
}  // namespace halftone::testing
