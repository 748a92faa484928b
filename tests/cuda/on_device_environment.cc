// On a machine without a usable device the tests say so in one line and do not start, but for those
// that HALFTONE_TESTS_WITHOUT_DEVICE=1 is set for: they need the libraries alone.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "halftone/kernels/device_backend.h"

namespace halftone::testing {
namespace {

class DeviceIsThere : public ::testing::Environment {
 public:
  void SetUp() override {
    if (std::getenv("HALFTONE_TESTS_WITHOUT_DEVICE") != nullptr) return;
    const auto opened = kernels::OpenCuda(0);
    // on_device.sh reads these lines.
    if (!opened.ok()) {
      std::printf("no CUDA device: %s\n", Message(opened.status()).c_str());
      // GoogleTest would list every test as skipped.
      std::exit(EXIT_FAILURE);
    }
    std::printf("CUDA device: %s\n", (*opened)->description().c_str());
  }
};

[[maybe_unused]] const ::testing::Environment* const kDeviceIsThere =
    ::testing::AddGlobalTestEnvironment(new DeviceIsThere);

}  // namespace
}  // namespace halftone::testing
