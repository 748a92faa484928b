#include "halftone/tests/cuda/direct_run.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "halftone/core/check.h"
#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/support/tolerances.h"

namespace halftone::testing {
namespace {

std::unique_ptr<kernels::Kernel> NativeKernel(const ir::Node& node) {
  CudaCandidates(node.op().name);  // registers
  auto kernel =
      kernels::KernelRegistry::Global().CreateNamed(node, "cuda:native:" + node.op().name);
  HT_CHECK(kernel.ok(), "no native CUDA kernel for the op");
  return *std::move(kernel);
}

DeviceMemory AtOffset(const Tensor& t, size_t offset) {
  std::vector<char> bytes(t.num_bytes() + offset);
  if (t.num_bytes() > 0) std::memcpy(bytes.data() + offset, t.raw(), t.num_bytes());
  return DeviceMemory(bytes.data(), bytes.size());
}

}  // namespace

Tensor RunNative(const ir::Node& node, const std::vector<Tensor>& inputs, Placement placement) {
  const std::unique_ptr<kernels::Kernel> kernel = NativeKernel(node);
  std::vector<DeviceMemory> arrays;
  std::vector<const void*> input_data;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const Tensor laid = Relaid(inputs[i], Plain(node.input_type(i)), node.input_type(i));
    arrays.push_back(AtOffset(laid, placement.offset));
    input_data.push_back(static_cast<char*>(arrays.back().data()) + placement.offset);
  }
  const ir::ValueType& type = node.output_type();
  arrays.push_back(AtOffset(Tensor::Zeros(type.dtype, type.shape), placement.offset));
  const DeviceMemory& target =
      placement.in_place < 0 ? arrays.back() : arrays[static_cast<size_t>(placement.in_place)];
  void* output = static_cast<char*>(target.data()) + placement.offset;
  kernels::DeviceRunState device_state;
  device_state.run_count = placement.run_count;
  const DeviceMemory state_memory(&device_state, sizeof(device_state));
  kernels::RunState state;
  state.device = static_cast<kernels::DeviceRunState*>(state_memory.data());
  kernel->Run({input_data.data(), &output, nullptr, &state, /*fault_id=*/1});
  HT_CHECK(state.error.ok(), "the launch failed");
  std::vector<char> bytes(target.bytes());
  CheckCuda(target.Read(bytes.data()));
  Tensor y = Tensor::Empty(type.dtype, type.shape);
  if (y.num_bytes() > 0) std::memcpy(y.raw(), bytes.data() + placement.offset, y.num_bytes());
  return Relaid(y, type, Plain(type));
}

Tensor RunCpu(const ir::Node& node, const std::vector<Tensor>& inputs, uint64_t run_count) {
  auto kernel = kernels::KernelRegistry::Global().Select(node, Device::Kind::kCpu);
  HT_CHECK(kernel.ok(), "no CPU kernel for the op");
  std::vector<Tensor> laid;
  std::vector<const void*> input_data;
  for (int i = 0; i < node.num_inputs(); ++i) {
    laid.push_back(Relaid(inputs[i], Plain(node.input_type(i)), node.input_type(i)));
    input_data.push_back(laid.back().raw());
  }
  const ir::ValueType& type = node.output_type();
  Tensor y = Tensor::Zeros(type.dtype, type.shape);
  void* output = y.raw();
  kernels::RunState state;
  state.run_count = run_count;
  std::vector<char> workspace((*kernel)->workspace_bytes());
  (*kernel)->Run({input_data.data(), &output, workspace.data(), &state});
  return Relaid(y, type, Plain(type));
}

::testing::AssertionResult SameBits(const Tensor& got, const Tensor& want) {
  if (got.dtype() != want.dtype() || got.shape() != want.shape()) {
    return ::testing::AssertionFailure() << got.TypeString() << " is no " << want.TypeString();
  }
  const size_t size = SizeOf(got.dtype());
  const auto* g = static_cast<const char*>(got.raw());
  const auto* w = static_cast<const char*>(want.raw());
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    if (std::memcmp(g + i * size, w + i * size, size) == 0) continue;
    if (got.at(i) != got.at(i) && want.at(i) != want.at(i)) continue;
    return ::testing::AssertionFailure()
           << "element " << i << " is " << got.at(i) << ", expected " << want.at(i);
  }
  return ::testing::AssertionSuccess();
}

void ExpectCpuBits(const OpCase& c, DType dtype, Placement placement, ir::Layout layout) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
  const ir::Node& node = *CaseNode(*graph);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
  EXPECT_TRUE(
      SameBits(RunNative(node, inputs, placement), RunCpu(node, inputs, placement.run_count)))
      << c.name << " in " << Name(dtype) << ", offset " << placement.offset << ", in place "
      << placement.in_place << (layout == ir::Layout::kPlain ? "" : ", channels-last");
}

void ExpectReference(const OpCase& c, DType dtype, ir::Layout layout) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, dtype, layout);
  const ir::Node& node = *CaseNode(*graph);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, dtype);
  const auto want = RunReference(node, inputs);
  ASSERT_TRUE(want.ok()) << Message(want.status());
  EXPECT_TRUE(AgreesWithReference(c.op, RunNative(node, inputs), (*want)[0]))
      << c.name << " in " << Name(dtype);
}

}  // namespace halftone::testing
