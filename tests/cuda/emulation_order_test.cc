// Every case gives the same bits in whatever order blocks and threads run: of the candidates that launch
// kernels of ours, since those of the emulated libraries know no order.
#include <gtest/gtest.h>

#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/cuda_emulation/control.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

using emulation::ThreadOrder;

class RunningIn {
 public:
  explicit RunningIn(ThreadOrder order) : before_(emulation::GetOptions()) {
    emulation::Options options = before_;
    options.order = order;
    emulation::SetOptions(options);
  }
  ~RunningIn() { emulation::SetOptions(before_); }

 private:
  emulation::Options before_;
};

class EmulationOrderTest : public ::testing::TestWithParam<std::string> {};

TEST_P(EmulationOrderTest, ResultsDoNotDependOnIt) {
  uint64_t blocks = 0;
  for (const OpCase* c : CasesOf(GetParam())) {
    const DType dtype = c->dtypes.back();
    const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(*c, dtype);
    const ir::Node& node = *CaseNode(*graph);
    const std::vector<Tensor> inputs = MakeCaseInputs(*c, dtype);
    for (const kernels::KernelCandidate* candidate : CudaCandidates(c->op)) {
      const auto kernel = kernels::KernelRegistry::Global().CreateNamed(node, candidate->name);
      if (!kernel.ok()) continue;
      const auto run = [&](ThreadOrder order) {
        const RunningIn scope(order);
        return RunOnDevice(**kernel, node, inputs);
      };
      const uint64_t before = emulation::GetStatistics().blocks;
      const auto forward = run(ThreadOrder::kForward);
      const uint64_t ran = emulation::GetStatistics().blocks - before;
      blocks += ran;
      if (ran == 0) continue;
      const auto reverse = run(ThreadOrder::kReverse);
      ASSERT_TRUE(forward.ok()) << c->name << ": " << forward.status();
      ASSERT_TRUE(reverse.ok()) << c->name << ": " << reverse.status();
      for (size_t i = 0; i < forward->size(); ++i) {
        EXPECT_TRUE(BitEqual((*forward)[i], (*reverse)[i]))
            << c->name << ": " << candidate->name << ", output " << i;
      }
    }
  }
  if (blocks == 0) GTEST_SKIP() << "no kernel of ours";
}

INSTANTIATE_TEST_SUITE_P(All, EmulationOrderTest, ::testing::ValuesIn(OpsWithCases()), OpTestName);

}  // namespace
}  // namespace halftone::testing
