// Fused equals unfused bit for bit, on graphs nobody wrote by hand: both run on the CPU's kernels.
#include <gtest/gtest.h>

#include "halftone/tests/support/random_elementwise.h"

namespace halftone::testing {
namespace {

TEST(RandomFusion, KeepsEveryBit) { EXPECT_EQ(CompareFusion({}, 0, 2000), ""); }

TEST(FusedBatchNorm, KeepsEveryBit) { EXPECT_EQ(CompareFusedBatchNorms({}), ""); }

}  // namespace
}  // namespace halftone::testing
