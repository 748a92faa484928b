// Fused equals unfused bit for bit on the device, too.
#include <gtest/gtest.h>

#include <cstdlib>

#include "halftone/tests/support/random_elementwise.h"

namespace halftone::testing {
namespace {

// HALFTONE_FUSION_GRAPHS: another number of graphs; what is emulated takes its time.
TEST(CudaFusion, RandomGraphsKeepEveryBit) {
  const char* const count = std::getenv("HALFTONE_FUSION_GRAPHS");
  EXPECT_EQ(CompareFusion({Device::Kind::kCuda}, 0, count == nullptr ? 100 : std::atoi(count)), "");
}

TEST(CudaFusion, BatchNormsKeepEveryBit) {
  EXPECT_EQ(CompareFusedBatchNorms({Device::Kind::kCuda}), "");
}

}  // namespace
}  // namespace halftone::testing
