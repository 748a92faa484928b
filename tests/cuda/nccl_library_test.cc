// NCCL as it is found at run time; the real one answers without a device.
#if defined(HALFTONE_HAS_NCCL)
#include <gtest/gtest.h>

#include <string>

#include "halftone/kernels/cuda/runtime/nccl.h"

namespace halftone::testing {
namespace {

TEST(NcclLibrary, IsOpenedOnceAndKnowsItsVersion) {
  const absl::StatusOr<const cuda::Nccl*> nccl = cuda::LoadNccl();
  ASSERT_TRUE(nccl.ok()) << nccl.status();
  EXPECT_EQ(*cuda::LoadNccl(), *nccl);
  int version = 0;
  ASSERT_EQ((*nccl)->get_version(&version), ncclSuccess);
  EXPECT_GE(version, 21400);
}

TEST(NcclLibrary, ErrorsHaveTheCallAndTheText) {
  const absl::StatusOr<const cuda::Nccl*> nccl = cuda::LoadNccl();
  ASSERT_TRUE(nccl.ok()) << nccl.status();
  EXPECT_TRUE(cuda::ToStatus(**nccl, ncclSuccess, "ncclAllReduce").ok());
  EXPECT_TRUE(cuda::ToStatus(**nccl, ncclInProgress, "ncclAllReduce").ok());
  const absl::Status status = cuda::ToStatus(**nccl, ncclInvalidUsage, "ncclAllReduce");
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_EQ(Message(status).rfind("ncclAllReduce: invalid usage", 0), 0u) << status;
}

}  // namespace
}  // namespace halftone::testing
#endif
