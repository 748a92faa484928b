#include "halftone/kernels/cuda/ops/random.h"

#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

class RandomKernel : public CudaKernel {
 public:
  RandomKernel(const ir::Node& node, cuda::RandomKind kind) {
    params_.kind = kind;
    params_.dtype = node.output_type().dtype;
    params_.size = node.output_type().num_elements();
    params_.seed = static_cast<uint64_t>(node.attrs().GetInt("seed"));
    if (kind == cuda::RandomKind::kUniform) {
      params_.shift = node.attrs().GetFloat("low");
      params_.scale = node.attrs().GetFloat("high") - params_.shift;
    } else if (kind == cuda::RandomKind::kNormal) {
      params_.shift = node.attrs().GetFloat("mean");
      params_.scale = node.attrs().GetFloat("std");
    }
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (params_.size == 0) return absl::OkStatus();
    const bool reads = params_.kind == cuda::RandomKind::kBernoulli;
    HT_CUDA_RETURN_IF_ERROR(LaunchRandom(params_, reads ? args.inputs[0] : nullptr, args.outputs[0],
                                         args.state->device, stream));
    return absl::OkStatus();
  }

 private:
  cuda::RandomParams params_;
};

void AddRandom(KernelRegistry& r, const char* op, cuda::RandomKind kind) {
  AddCudaCandidate(r, "native", op, ir::kFloats, PlainThroughout,
                   [kind](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
                     return std::make_unique<RandomKernel>(node, kind);
                   });
}

}  // namespace

void Register_cuda_random(KernelRegistry& r) {
  AddRandom(r, "random_uniform", cuda::RandomKind::kUniform);
  AddRandom(r, "random_normal", cuda::RandomKind::kNormal);
  AddRandom(r, "bernoulli", cuda::RandomKind::kBernoulli);
}

}  // namespace halftone::kernels
