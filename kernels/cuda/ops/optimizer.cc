// The update ops, a group of parameters at a time, and those of rows.
#include "halftone/kernels/cuda/ops/optimizer.h"

#include <vector>

#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

cuda::UpdateStorage StorageOf(const ir::Node& node) {
  return {node.output_type().dtype, ops::RoundingOf(node.attrs())};
}

uint64_t SeedOf(const ir::Node& node) { return static_cast<uint64_t>(node.attrs().GetInt("seed")); }

template <typename Update>
class UpdateKernel : public CudaKernel {
 public:
  explicit UpdateKernel(const std::vector<const ir::Node*>& nodes)
      : hyper_(ops::WithAttributes(Update(), nodes[0]->attrs())), storage_(StorageOf(*nodes[0])) {
    for (const ir::Node* node : nodes) {
      const std::optional<DType> low = ops::LowCopyOf(*node);
      const cuda::CopyType copy = !low.has_value()      ? cuda::CopyType::kNone
                                  : *low == DType::kF16 ? cuda::CopyType::kF16
                                                        : cuda::CopyType::kBF16;
      members_.push_back({node->output_type().num_elements(), copy, SeedOf(*node)});
    }
    if constexpr (ops::kHasTrustRatio<Update>) {
      size_t squares = members_.size();
      for (const cuda::UpdateMember& member : members_) {
        squares += static_cast<size_t>((member.size + cuda::kUpdateChunk - 1) / cuda::kUpdateChunk);
      }
      workspace_bytes_ = squares * sizeof(cuda::UpdateSquares);
    }
    keeps_state_on_fault_ = writes_copies_ = true;
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const cuda::UpdateGroup group{
        members_.data(),   members_.size(), args.inputs,
        args.outputs,      args.copies,     static_cast<cuda::UpdateSquares*>(args.workspace),
        args.state->device};
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchUpdate(hyper_, group, storage_, stream));
    return absl::OkStatus();
  }

 private:
  Update hyper_;
  cuda::UpdateStorage storage_;
  std::vector<cuda::UpdateMember> members_;
};

template <typename Update>
absl::StatusOr<std::unique_ptr<Kernel>> CreateGroup(const std::vector<const ir::Node*>& nodes) {
  return std::unique_ptr<Kernel>(new UpdateKernel<Update>(nodes));
}

template <typename Update>
class RowUpdateKernel : public CudaKernel {
 public:
  explicit RowUpdateKernel(const ir::Node& node)
      : hyper_(ops::WithAttributes(Update(), node.attrs())),
        table_(node.output_type()),
        count_(node.input_type(ops::RowUpdatePort::kIds).num_elements()),
        tables_(node.num_outputs()),
        storage_(StorageOf(node)),
        seed_(SeedOf(node)) {
    keeps_state_on_fault_ = true;
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const auto bytes = static_cast<size_t>(table_.num_bytes());
    for (int i = 0; i < tables_ && bytes > 0; ++i) {
      const int input = i == 0 ? +ops::UpdatePort::kParam : ops::RowUpdatePort::kFirstState + i - 1;
      if (args.inputs[input] == args.outputs[i]) continue;
      HT_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(args.outputs[i], args.inputs[input], bytes,
                                              cudaMemcpyDeviceToDevice, stream));
    }
    const cuda::RowUpdate update{args.inputs, args.outputs, table_.shape[0],   table_.shape[1],
                                 count_,      seed_,        args.state->device};
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchRowUpdate(hyper_, update, storage_, stream));
    return absl::OkStatus();
  }

 private:
  Update hyper_;
  ir::ValueType table_;
  int64_t count_;
  int tables_;  // the parameter, and its states
  cuda::UpdateStorage storage_;
  uint64_t seed_;
};

}  // namespace

void Register_cuda_optimizer(KernelRegistry& r) {
  static constexpr ir::DTypeSet kStored{DType::kF32, DType::kF64, DType::kBF16};
  ops::ForEachUpdate([&r]<typename Update>(const Update&) {
    KernelCandidate candidate;
    candidate.op = ops::kUpdateInfo<Update>.op;
    candidate.name = Concat("cuda:native:", candidate.op);
    candidate.device = Device::Kind::kCuda;
    candidate.tier = KernelTier::kNative;
    candidate.dtypes = kStored;
    candidate.create = [](const ir::Node& node) { return CreateGroup<Update>({&node}); };
    candidate.create_group = CreateGroup<Update>;
    r.Add(std::move(candidate));
    if constexpr (ops::kIsRowWise<Update>) {
      AddCudaKernel<RowUpdateKernel<Update>>(r, ops::RowUpdateOp<Update>(), kStored);
    }
  });
}

}  // namespace halftone::kernels
