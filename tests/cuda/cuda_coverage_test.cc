// Every op has CUDA kernels, and every CUDA kernel runs in some case of its op's table.
#include <gtest/gtest.h>

#include <set>

#include "halftone/kernels/device_backend.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/op_coverage.h"
#include "halftone/tests/support/target_differences.h"

#if defined(HALFTONE_CUDA_EMULATED)
#include "halftone/tests/cuda_emulation/control.h"
#endif

namespace halftone::testing {
namespace {

using kernels::KernelCandidate;
using kernels::KernelRegistry;

TEST(CudaCoverage, EveryOpHasWhatItMust) {
  ASSERT_TRUE(kernels::OpenCuda(0).ok());
  for (const ir::OpRecord* op : ir::OpRegistry::Global().All()) {
    EXPECT_EQ(KernelsLackedBy(*op, Device::Kind::kCuda, KernelRegistry::Global()), "") << op->name;
  }
}

TEST(CudaCoverage, TheFixedTargetRunsWhatTheRegistryHas) {
  ASSERT_TRUE(kernels::OpenCuda(0).ok());
  const auto target = kernels::FindFixedTarget("cuda-sm90");
  ASSERT_TRUE(target.ok()) << target.status();
  std::string differences;
  for (const std::string& line : TargetDifferences(**target, Device::Kind::kCuda)) {
    differences += line + "\n";
  }
  EXPECT_EQ(differences, "");
}

// Of one rank they could be decomposed; of several they cannot.
TEST(CudaCoverage, ReductionsOverRanksHaveKernelsOfTheirOwn) {
  ASSERT_TRUE(kernels::OpenCuda(0).ok());
  const auto target = kernels::FindFixedTarget("cuda-sm90");
  ASSERT_TRUE(target.ok()) << target.status();
  for (const char* op :
       {"all_reduce", "all_reduce_start", "all_reduce_wait", "reduce_scatter_start",
        "reduce_scatter_wait", "all_gather_start", "all_gather_wait"}) {
    EXPECT_TRUE((*target)->CanRun(op)) << op;
    const auto candidates = KernelRegistry::Global().Candidates(op, Device::Kind::kCuda);
    ASSERT_EQ(candidates.size(), 1u) << op;
    for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
      EXPECT_TRUE(candidates[0]->dtypes.Contains(dtype)) << op << ", " << Name(dtype);
    }
  }
}

TEST(CudaCoverage, EveryKernelRunsInACase) {
#if defined(HALFTONE_CUDA_EMULATED)
  // A device with 8-bit products, as the real one that the tests run on.
  const emulation::Options before = emulation::GetOptions();
  emulation::Options newer = before;
  newer.compute_major = 9;
  emulation::SetOptions(newer);
#endif
  std::set<std::string> run;
  for (const OpCase& c : AllOpCases()) {
    for (const DType dtype : c.dtypes) {
      for (const ir::Layout layout : {ir::Layout::kPlain, ir::Layout::kChannelsLast}) {
        if (layout == ir::Layout::kChannelsLast && !c.channels_last) continue;
        const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
        for (const KernelCandidate* candidate : CudaCandidates(c.op)) {
          if (run.contains(candidate->name)) continue;
          if (KernelRegistry::Global().CreateNamed(*CaseNode(*graph), candidate->name).ok()) {
            run.insert(candidate->name);
          }
        }
      }
    }
  }
  int kernels = 0;
  for (const KernelCandidate* candidate : KernelRegistry::Global().All()) {
    if (candidate->device != Device::Kind::kCuda) continue;
    EXPECT_TRUE(run.contains(candidate->name)) << candidate->name << " serves no case";
    ++kernels;
  }
  EXPECT_GT(kernels, 80);
#if defined(HALFTONE_CUDA_EMULATED)
  emulation::SetOptions(before);
#endif
}

}  // namespace
}  // namespace halftone::testing
