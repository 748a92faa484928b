#include "halftone/tests/cuda/check_on_device.h"

#include "halftone/core/check.h"
#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tensors.h"
#include "halftone/tests/support/tolerances.h"
#if defined(HALFTONE_CUDA_EMULATED)
#include "halftone/tests/cuda_emulation/control.h"
#endif

namespace halftone::testing {
namespace {

absl::StatusOr<std::vector<Tensor>> Run(const ir::Node& node, const std::vector<Tensor>& inputs) {
  CudaCandidates(node.op().name);  // registers them
  HT_ASSIGN_OR_RETURN(const auto kernel, kernels::KernelRegistry::Global().CreateNamed(
                                             node, "cuda:native:" + node.op().name));
  return RunOnDevice(*kernel, node, inputs);
}

}  // namespace

void CheckOnDevice(const OpCase& c, DType dtype, const std::vector<Tensor>& inputs,
                   ir::Layout layout) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
  const ir::Node& node = *CaseNode(*graph);
  const std::string where =
      Concat(c.name, " in ", Name(dtype), layout == ir::Layout::kPlain ? "" : ", channels-last");
  const auto got = Run(node, inputs);
  ASSERT_TRUE(got.ok()) << where << ": " << Message(got.status());
  const auto want = RunReference(node, inputs);
  ASSERT_TRUE(want.ok()) << where << ": " << Message(want.status());
  for (size_t i = 0; i < want->size(); ++i) {
    EXPECT_TRUE(AgreesWithReference(c.op, (*got)[i], (*want)[i], c.slack))
        << where << ", output " << i;
  }
#if defined(HALFTONE_CUDA_EMULATED)
  emulation::Options options = emulation::GetOptions();
  options.order = emulation::ThreadOrder::kReverse;
  const emulation::ScopedOptions scope(options);
  const auto reversed = Run(node, inputs);
  ASSERT_TRUE(reversed.ok()) << where << ": " << Message(reversed.status());
  for (size_t i = 0; i < got->size(); ++i) {
    EXPECT_TRUE(BitEqual((*got)[i], (*reversed)[i])) << where << ", output " << i << ", reversed";
  }
#endif
}

void CheckOnDevice(const OpCase& c) {
  for (DType dtype : c.dtypes) {
    const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
    CheckOnDevice(c, dtype, inputs, ir::Layout::kPlain);
    if (c.channels_last) CheckOnDevice(c, dtype, inputs, ir::Layout::kChannelsLast);
  }
}

std::vector<Tensor> RunCaseOnDevice(const OpCase& c, DType dtype, const std::vector<Tensor>& inputs,
                                    ir::Layout layout) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
  const auto results = Run(*CaseNode(*graph), inputs);
  EXPECT_TRUE(results.ok()) << c.name << ": " << Message(results.status());
  return results.ok() ? *results : std::vector<Tensor>();
}

absl::Status ErrorOnDevice(const OpCase& c, DType dtype, const std::vector<Tensor>& inputs) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype);
  return Run(*CaseNode(*graph), inputs).status();
}

}  // namespace halftone::testing
