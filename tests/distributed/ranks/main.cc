// rank_tests: tests that every rank of a job runs, in the same order (tests/distributed/jobs_test.cc
// starts the jobs, and by a transport of its own, on emulated devices, CMakeLists.txt). A rank that fails ends
// the others.
#include <gtest/gtest.h>

#include <cstdio>

#include "halftone/halftone.h"

#if defined(HALFTONE_CUDA_EMULATED)
#include "halftone/tests/cuda_emulation/control.h"
#endif

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  const absl::Status joined = halftone::distributed::Init({.timeout_seconds = 20});
  if (!joined.ok()) {
    std::fprintf(stderr, "%s\n", halftone::Message(joined).c_str());
    return 1;
  }
  halftone::SetNumThreads(1);
#if defined(HALFTONE_CUDA_EMULATED)
  halftone::emulation::Options options = halftone::emulation::GetOptions();
  options.device_count = halftone::distributed::Size();
  halftone::emulation::SetOptions(options);
#endif
  return RUN_ALL_TESTS();
}
