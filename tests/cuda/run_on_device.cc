#include "halftone/tests/cuda/run_on_device.h"

#include <cuda_runtime_api.h>

#include <cstring>

#include "halftone/kernels/cuda/runtime/status.h"
#include "halftone/kernels/device_backend.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/support/run_kernel.h"

namespace halftone::testing {

ir::ValueType Plain(ir::ValueType type) {
  type.layout = ir::Layout::kPlain;
  return type;
}

namespace {

constexpr size_t kGuardBytes = 256;  // cudaMalloc's alignment

// An output between guards, filled with one byte throughout.
class GuardedOutput {
 public:
  GuardedOutput(const ir::ValueType& type, unsigned char fill)
      : type_(type),
        fill_(fill),
        before_(type.num_bytes() + 2 * kGuardBytes, fill),
        memory_(before_.data(), before_.size()) {}
  void* data() const { return static_cast<char*>(memory_.data()) + kGuardBytes; }
  // Null tensor: the guards are broken.
  absl::StatusOr<Tensor> Value() const {
    std::vector<unsigned char> all(before_.size());
    HT_CUDA_RETURN_IF_ERROR(memory_.Read(all.data()));
    for (size_t i = 0; i < kGuardBytes; ++i) {
      if (all[i] != fill_ || all[all.size() - 1 - i] != fill_) return Tensor();
    }
    Tensor t = Tensor::Empty(type_.dtype, type_.shape);
    std::memcpy(t.raw(), all.data() + kGuardBytes, t.num_bytes());
    return t;
  }

 private:
  ir::ValueType type_;
  unsigned char fill_;
  std::vector<unsigned char> before_;
  DeviceMemory memory_;
};

absl::StatusOr<std::vector<Tensor>> RunOnce(kernels::Kernel& kernel, const ir::Node& node,
                                            const std::vector<Tensor>& inputs, unsigned char fill) {
  std::vector<Tensor> laid;
  std::vector<DeviceMemory> on_device;
  std::vector<const void*> input_data;
  for (int i = 0; i < node.num_inputs(); ++i) {
    laid.push_back(Relaid(inputs[i], Plain(node.input_type(i)), node.input_type(i)));
    on_device.emplace_back(laid.back().raw(), laid.back().num_bytes());
    input_data.push_back(on_device.back().data());
  }
  std::vector<GuardedOutput> outputs;
  std::vector<void*> output_data;
  for (int i = 0; i < node.num_outputs(); ++i) {
    outputs.emplace_back(node.output_type(i), fill);
    output_data.push_back(outputs.back().data());
  }
  const std::vector<unsigned char> filled(kernel.workspace_bytes(), fill);
  const DeviceMemory workspace(filled.data(), filled.size());
  kernels::DeviceRunState device_state;
  device_state.run_count = kTestRunCount;
  const DeviceMemory device_state_memory(&device_state, sizeof(device_state));
  kernels::RunState state;
  state.run_count = kTestRunCount;
  state.device = static_cast<kernels::DeviceRunState*>(device_state_memory.data());
  cudaStream_t stream = nullptr;
  HT_CUDA_RETURN_IF_ERROR(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  state.stream = stream;
  // What the test wrote above went through another stream.
  HT_CUDA_RETURN_IF_ERROR(cudaDeviceSynchronize());
  kernel.Run({input_data.data(), output_data.data(), workspace.data(), &state, /*fault_id=*/7});
  const cudaError_t ran = cudaStreamSynchronize(stream);
  HT_RETURN_IF_ERROR(state.error);
  HT_CUDA_RETURN_IF_ERROR(ran);
  HT_CUDA_RETURN_IF_ERROR(cudaStreamDestroy(stream));
  HT_CUDA_RETURN_IF_ERROR(device_state_memory.Read(&device_state));
  if (device_state.fault_id != 0) {
    if (device_state.fault_id != 7) return Internal("a fault under another node's number");
    return kernels::FaultError(node, {true, device_state.fault_value, device_state.fault_bound,
                                      device_state.fault_position});
  }

  std::vector<Tensor> results;
  for (int i = 0; i < node.num_inputs(); ++i) {
    Tensor after = laid[i].Clone();
    HT_CUDA_RETURN_IF_ERROR(on_device[i].Read(after.raw()));
    if (!BitEqual(after, laid[i])) {
      return Internal(kernel.name(), " changes input ", i, " of ", node.Label());
    }
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    HT_ASSIGN_OR_RETURN(const Tensor value, outputs[i].Value());
    if (!value.defined()) {
      return Internal(kernel.name(), " writes beside output ", i, " of ", node.Label());
    }
    results.push_back(Relaid(value, node.output_type(i), Plain(node.output_type(i))));
  }
  return results;
}

// Elementwise the same bits, or NaN in both.
bool SameValues(const Tensor& a, const Tensor& b) {
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    const double x = a.at(i), y = b.at(i);
    if (x != y && (x == x || y == y)) return false;
  }
  return true;
}

}  // namespace

std::vector<const kernels::KernelCandidate*> CudaCandidates(const std::string& op) {
  const auto opened = kernels::OpenCuda(0);
  HT_CHECK(opened.ok(), "the tests of CUDA kernels need a device");
  return kernels::KernelRegistry::Global().Candidates(op, Device::Kind::kCuda);
}

absl::StatusOr<std::vector<Tensor>> RunOnDevice(kernels::Kernel& kernel, const ir::Node& node,
                                                const std::vector<Tensor>& inputs) {
  HT_ASSIGN_OR_RETURN(std::vector<Tensor> first, RunOnce(kernel, node, inputs, 0xA5));
  HT_ASSIGN_OR_RETURN(const std::vector<Tensor> second, RunOnce(kernel, node, inputs, 0x3C));
  for (size_t i = 0; i < first.size(); ++i) {
    if (!SameValues(first[i], second[i])) {
      return Internal(kernel.name(), " leaves elements of output ", i, " of ", node.Label(),
                      " unwritten, or reads what it did not write");
    }
  }
  return first;
}

}  // namespace halftone::testing
