// Each CUDA kernel against the reference kernel: every case, dtype and layout.
#include <gtest/gtest.h>

#include <cstdio>

#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tolerances.h"

namespace halftone::testing {
namespace {

using kernels::KernelCandidate;

// NVIDIA's libraries may transform f32 (Winograd, FFT) or add in an order that costs digits: how far that goes, a card
// has to show first. on_device.sh collects what is printed.
bool OnlyRoundsOtherwise([[maybe_unused]] const kernels::Kernel& kernel,
                         [[maybe_unused]] const ir::Node& node, [[maybe_unused]] const Tensor& got,
                         [[maybe_unused]] const Tensor& want, [[maybe_unused]] Slack slack) {
#if defined(HALFTONE_CUDA_EMULATED)
  return false;
#else
  if (kernel.name().find(":native:") != std::string::npos) return false;
  slack.factor *= 16;
  return static_cast<bool>(AgreesWithReference(node.op().name, got, want, slack));
#endif
}

::testing::AssertionResult Agrees(kernels::Kernel& kernel, const ir::Node& node,
                                  const std::vector<Tensor>& inputs, const Slack& slack) {
  const auto want = RunReference(node, inputs);
  if (!want.ok()) return ::testing::AssertionFailure() << "reference: " << Message(want.status());
  const auto got = RunOnDevice(kernel, node, inputs);
  if (!got.ok()) return ::testing::AssertionFailure() << Message(got.status());
  for (size_t i = 0; i < want->size(); ++i) {
    const auto agrees = AgreesWithReference(node.op().name, (*got)[i], (*want)[i], slack);
    if (!agrees && OnlyRoundsOtherwise(kernel, node, (*got)[i], (*want)[i], slack)) {
      std::printf("distance: %s, %s: %s\n", kernel.name().c_str(), kernel.implementation().c_str(),
                  agrees.message());
      continue;
    }
    if (!agrees) return ::testing::AssertionFailure() << "output " << i << ": " << agrees.message();
  }
  return ::testing::AssertionSuccess();
}

void CheckCase(const OpCase& c, DType dtype, ir::Layout layout) {
  // What has no kernel here is decomposed; CudaCoverage knows by name what that is.
  if (CudaCandidates(c.op).empty() && ir::OpRegistry::Global().Find(c.op)->decompose) return;
  const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
  const ir::Node& node = *CaseNode(*graph);
  int served = 0;
  std::string refusals;
  for (const KernelCandidate* candidate : CudaCandidates(c.op)) {
    auto kernel = kernels::KernelRegistry::Global().CreateNamed(node, candidate->name);
    if (!kernel.ok()) {
      EXPECT_EQ(kernel.status().code(), absl::StatusCode::kUnimplemented)
          << c.name << ": " << Message(kernel.status());
      refusals += candidate->name + ": " + Message(kernel.status()) + "\n";
      continue;
    }
    ++served;
    EXPECT_TRUE(Agrees(**kernel, node, inputs, c.slack))
        << c.name << ": " << candidate->name << " in " << Name(dtype)
        << (layout == ir::Layout::kPlain ? "" : ", channels-last");
  }
  // On this device nothing falls back to the reference kernels.
  EXPECT_GT(served, 0) << c.name << " in " << Name(dtype)
                       << (layout == ir::Layout::kPlain ? "" : ", channels-last") << "\n"
                       << refusals;
}

class CudaCaseTest : public ::testing::TestWithParam<std::string> {};

TEST_P(CudaCaseTest, AgreesWithTheReference) {
  for (const OpCase* c : CasesOf(GetParam())) {
    for (DType dtype : c->dtypes) {
      CheckCase(*c, dtype, ir::Layout::kPlain);
      if (c->channels_last) CheckCase(*c, dtype, ir::Layout::kChannelsLast);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, CudaCaseTest, ::testing::ValuesIn(OpsWithCases()), OpTestName);

}  // namespace
}  // namespace halftone::testing
