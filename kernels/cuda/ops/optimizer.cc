// The update ops, a group of parameters at a time.
#include "halftone/kernels/cuda/ops/optimizer.h"

#include <vector>

#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

using ops::UpdatePort;

template <typename Update>
class UpdateKernel : public CudaKernel {
 public:
  explicit UpdateKernel(const std::vector<GroupMember>& members)
      : hyper_(ops::WithAttributes(Update(), members[0].node->attrs())),
        f64_(members[0].node->output_type().dtype == DType::kF64) {
    for (const GroupMember& m : members) {
      const cuda::CopyType copy = !m.copy.has_value()      ? cuda::CopyType::kNone
                                  : *m.copy == DType::kF16 ? cuda::CopyType::kF16
                                                           : cuda::CopyType::kBF16;
      members_.push_back({m.node->output_type().num_elements(), copy});
    }
    keeps_state_on_fault_ = true;
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const cuda::UpdateGroup group{members_.data(), members_.size(), args.inputs,
                                  args.outputs,    args.copies,     args.state->device};
    HT_CUDA_RETURN_IF_ERROR(cuda::LaunchUpdate(hyper_, group, f64_, stream));
    return absl::OkStatus();
  }

 private:
  Update hyper_;
  bool f64_;
  std::vector<cuda::UpdateMember> members_;
};

template <typename Update>
absl::StatusOr<std::unique_ptr<Kernel>> CreateGroup(const std::vector<GroupMember>& members) {
  for (const GroupMember& m : members) {
    if (m.copy.has_value() && !IsLow(*m.copy)) {
      return Unimplemented("a copy in ", Name(*m.copy), "; only f16 and bf16");
    }
  }
  return std::unique_ptr<Kernel>(new UpdateKernel<Update>(members));
}

// The scalar operands are read once for all.
bool CanGroup(const ir::Node& a, const ir::Node& b) {
  if (a.op().name != b.op().name || !(a.attrs() == b.attrs()) || a.num_inputs() != b.num_inputs() ||
      a.output_type().dtype != b.output_type().dtype) {
    return false;
  }
  for (int port = UpdatePort::kLr; port <= UpdatePort::kStep; ++port) {
    if (!(a.input(port) == b.input(port))) return false;
  }
  return true;
}

}  // namespace

void Register_cuda_optimizer(KernelRegistry& r) {
  ops::ForEachUpdate([&r]<typename Update>(const Update&) {
    KernelCandidate candidate;
    candidate.op = ops::kUpdateInfo<Update>.op;
    candidate.name = Concat("cuda:native:", candidate.op);
    candidate.device = Device::Kind::kCuda;
    candidate.tier = KernelTier::kNative;
    candidate.dtypes = {DType::kF32, DType::kF64};
    candidate.create = [](const ir::Node& node) {
      return CreateGroup<Update>({GroupMember{&node, std::nullopt}});
    };
    candidate.can_group = CanGroup;
    candidate.create_group = CreateGroup<Update>;
    r.Add(std::move(candidate));
  });
}

}  // namespace halftone::kernels
