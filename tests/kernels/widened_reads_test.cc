// Inputs that a record says are widened as they are read (ir::AmpTrait::widens_inputs): every CPU
// kernel gives of 16-bit operands, bit for bit, what it gives of their copies in f32, once rounded.
#include <gtest/gtest.h>

#include "halftone/tests/kernels/simd_levels.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {
namespace {

using kernels::KernelCandidate;
using kernels::KernelRegistry;

bool WidensInputs(const OpCase& c) {
  return !ir::OpRegistry::Global().Find(c.op)->amp.widens_inputs.empty();
}

// A kernel's results in the types of `like`; nothing where it does not support the node.
std::vector<Tensor> ResultsOf(const KernelCandidate& candidate, const ir::Node& node,
                              const std::vector<Tensor>& inputs, const ir::Node& like) {
  auto kernel = KernelRegistry::Global().CreateNamed(node, candidate.name);
  if (!kernel.ok()) return {};
  auto outputs = RunKernel(**kernel, node, inputs);
  EXPECT_TRUE(outputs.ok()) << Message(outputs.status());
  if (!outputs.ok()) return {};
  std::vector<Tensor> results;
  for (int i = 0; i < node.num_outputs(); ++i) {
    results.push_back((*outputs)[static_cast<size_t>(i)].To(like.output_type(i).dtype));
  }
  return results;
}

// The number of kernels that were compared.
int CheckWidenedReads(const OpCase& c, DType dtype) {
  const std::unique_ptr<ir::Graph> low = BuildCaseGraph(c, dtype);
  const std::unique_ptr<ir::Graph> wide = BuildCaseGraph(c, DType::kF32);
  const ir::Node &low_node = *CaseNode(*low), &wide_node = *CaseNode(*wide);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
  std::vector<Tensor> copies;
  for (int i = 0; i < wide_node.num_inputs(); ++i) {
    copies.push_back(inputs[static_cast<size_t>(i)].To(wide_node.input_type(i).dtype));
  }
  int compared = 0;
  for (const auto* candidate : KernelRegistry::Global().Candidates(c.op, Device::Kind::kCpu)) {
    for (const SimdLevel level : SimdLevelsHere()) {
      const ForcedSimdLevel forced(level);
      const std::vector<Tensor> got = ResultsOf(*candidate, low_node, inputs, low_node);
      const std::vector<Tensor> want = ResultsOf(*candidate, wide_node, copies, low_node);
      if (got.empty() || want.empty()) continue;
      ++compared;
      for (size_t i = 0; i < got.size(); ++i) {
        EXPECT_TRUE(BitEqual(got[i], want[i]))
            << c.name << ": output " << i << " of " << candidate->name << " in " << Name(dtype)
            << ", " << Name(level);
      }
    }
  }
  return compared;
}

class WidenedReads : public ::testing::TestWithParam<std::string> {};

TEST_P(WidenedReads, GiveWhatTheWideCopyGives) {
  for (const OpCase* c : CasesOf(GetParam(), WidensInputs)) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      EXPECT_GE(CheckWidenedReads(*c, dtype), 2) << c->name << ": the reference and another kernel";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, WidenedReads, ::testing::ValuesIn(OpsWithCases(WidensInputs)),
                         OpTestName);

}  // namespace
}  // namespace halftone::testing
