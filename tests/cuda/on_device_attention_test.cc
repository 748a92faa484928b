// cuDNN's attention beside ours at the size of GPT-2 small: 8 x 12 heads x 1024 x 64, bf16, causal.
// Prints the time of each.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <vector>

#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {
namespace {

using kernels::Kernel;

OpCase LargeAttention(bool gradient) {
  const Shape operand{8, 12, 1024, 64};
  std::vector<OpInput> inputs(3, Reals(operand, -1, 1));
  if (gradient) {  // any y, and stats that make weights of at most exp(8 - 10)
    inputs.push_back(Reals(operand));
    inputs.push_back(Pinned(Reals(Shape{2, 8, 12, 1024}, 5, 6)));
    inputs.push_back(Reals(operand));
  }
  return Case(gradient ? "scaled_dot_product_attention_grad" : "scaled_dot_product_attention",
              "large", inputs, {{"scale", 0.125}, {"is_causal", true}});
}

// The least of ten runs, in milliseconds between events.
double Milliseconds(Kernel& kernel, const ir::Node& node, const std::vector<Tensor>& inputs) {
  std::vector<DeviceMemory> memory;
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const Tensor& t : inputs) {
    in.push_back(memory.emplace_back(t.raw(), t.num_bytes()).data());
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    out.push_back(memory.emplace_back(node.output_type(i).num_bytes()).data());
  }
  const DeviceMemory workspace(kernel.workspace_bytes());
  const kernels::DeviceRunState none;
  const DeviceMemory device_state(&none, sizeof(none));
  kernels::RunState state;
  state.device = static_cast<kernels::DeviceRunState*>(device_state.data());
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr, end = nullptr;
  CheckCuda(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  CheckCuda(cudaEventCreate(&begin));
  CheckCuda(cudaEventCreate(&end));
  CheckCuda(cudaDeviceSynchronize());
  state.stream = stream;
  float least = 1e9F;
  for (int i = 0; i < 10; ++i) {
    CheckCuda(cudaEventRecord(begin, stream));
    kernel.Run({in.data(), out.data(), workspace.data(), &state, /*fault_id=*/7});
    CheckCuda(cudaEventRecord(end, stream));
    CheckCuda(cudaStreamSynchronize(stream));
    EXPECT_TRUE(state.error.ok()) << Message(state.error);
    float elapsed = 0;
    CheckCuda(cudaEventElapsedTime(&elapsed, begin, end));
    least = std::min(least, elapsed);
  }
  CheckCuda(cudaEventDestroy(begin));
  CheckCuda(cudaEventDestroy(end));
  CheckCuda(cudaStreamDestroy(stream));
  return least;
}

TEST(CudnnAttentionOnDevice, AgreesWithOursAtGpt2sSize) {
  for (const bool gradient : {false, true}) {
    const OpCase c = LargeAttention(gradient);
    const auto graph = BuildCaseGraph(c, DType::kBF16);
    const ir::Node& node = *CaseNode(*graph);
    const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kBF16);
    CudaCandidates(c.op);
    std::vector<std::vector<Tensor>> results;
    for (const std::string how : {"cudnn", "native"}) {
      auto kernel = kernels::KernelRegistry::Global().CreateNamed(node, "cuda:" + how + ":" + c.op);
      ASSERT_TRUE(kernel.ok()) << Message(kernel.status());
      auto result = RunOnDevice(**kernel, node, inputs);
      ASSERT_TRUE(result.ok()) << Message(result.status());
      results.push_back(*std::move(result));
      std::printf("%s %s, 8 x 12 x 1024 x 64 bf16 causal: %.3f ms\n", (*kernel)->name().c_str(),
                  (*kernel)->implementation().c_str(), Milliseconds(**kernel, node, inputs));
    }
    for (size_t i = 0; i < results[0].size(); ++i) {
      double largest = 0;
      for (int64_t j = 0; j < results[1][i].num_elements(); ++j) {
        largest = std::max(largest, std::abs(results[1][i].at(j)));
      }
      // Weights, and the gradient of scores, are rounded to bf16 by cuDNN alone.
      EXPECT_TRUE(IsClose(results[0][i], results[1][i], 0x1p-7, 0x1p-8 * largest))
          << c.op << ", output " << i;
    }
  }
}

}  // namespace
}  // namespace halftone::testing
