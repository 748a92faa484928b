// What CUDA kernels share on the host side: work put on a stream, and registration.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "halftone/kernels/cuda/runtime/status.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// A kernel that puts its work on the run's stream. Launch does not wait, allocates nothing in
// device memory and reads nothing of it: a step is captured once and replayed.
class CudaKernel : public Kernel {
 public:
  void Run(const KernelArgs& args) final {
    if (!args.state->error.ok()) return;
    absl::Status status = Launch(args, static_cast<cudaStream_t>(args.state->stream));
    if (!status.ok()) args.state->error = Annotate(status, name() + ": ");
  }

 protected:
  virtual absl::Status Launch(const KernelArgs& args, cudaStream_t stream) = 0;
};

// Registers "cuda:<how>:<op>"; how: "native" (our kernels, tier kNative), "cublaslt" or "cudnn"
// (tier kLibrary). `dtypes` are those of the first float input. `supports` may be null.
void AddCudaCandidate(
    KernelRegistry& r, const std::string& how, const std::string& op, ir::DTypeSet dtypes,
    std::function<absl::Status(const ir::Node&)> supports,
    std::function<absl::StatusOr<std::unique_ptr<Kernel>>(const ir::Node&)> create);

// K is constructible from the node.
template <typename K>
void AddCudaKernel(KernelRegistry& r, const std::string& op, ir::DTypeSet dtypes,
                   std::function<absl::Status(const ir::Node&)> supports = nullptr) {
  AddCudaCandidate(r, "native", op, dtypes, std::move(supports),
                   [](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                     return std::unique_ptr<Kernel>(new K(node));
                   });
}

// Defined in the generated list. OpenCuda calls it once for the global registry.
void RegisterCudaKernels(KernelRegistry& registry);

}  // namespace halftone::kernels
