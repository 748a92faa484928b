// sgd_update and adam_update, a group of parameters at a time.
#include "halftone/kernels/cuda/ops/optimizer.h"

#include <vector>

#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

// Ports that both ops share; see graph/ops/optimizer_updates.cc.
enum Port { kParam, kGrad, kLr, kInvScale, kClip, kApply, kStep, kState };

cuda::SgdRule RuleOf(const ir::Attributes& attrs, cuda::SgdRule*) {
  return {attrs.GetFloat("momentum"), attrs.GetFloat("dampening"), attrs.GetFloat("weight_decay"),
          attrs.GetFloat("clip_value"), attrs.GetBool("nesterov")};
}

cuda::AdamRule RuleOf(const ir::Attributes& attrs, cuda::AdamRule*) {
  return {attrs.GetFloat("beta1"),        attrs.GetFloat("beta2"),      attrs.GetFloat("eps"),
          attrs.GetFloat("weight_decay"), attrs.GetFloat("clip_value"), attrs.GetBool("decoupled")};
}

cudaError_t LaunchUpdate(const cuda::SgdRule& rule, const cuda::UpdateScalars& scalars,
                         const auto& batch, bool f64, cudaStream_t stream) {
  return cuda::LaunchSgd(rule, scalars, batch, f64, stream);
}
cudaError_t LaunchUpdate(const cuda::AdamRule& rule, const cuda::UpdateScalars& scalars,
                         const cuda::UpdateBatch<2>& batch, bool f64, cudaStream_t stream) {
  return cuda::LaunchAdam(rule, scalars, batch, f64, stream);
}

template <typename Rule, int kStates>
class UpdateKernel : public CudaKernel {
 public:
  explicit UpdateKernel(const std::vector<GroupMember>& members)
      : rule_(RuleOf(members[0].node->attrs(), static_cast<Rule*>(nullptr))),
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
    const cuda::UpdateScalars scalars{static_cast<const float*>(args.inputs[kLr]),
                                      static_cast<const float*>(args.inputs[kInvScale]),
                                      static_cast<const float*>(args.inputs[kClip]),
                                      static_cast<const bool*>(args.inputs[kApply]),
                                      static_cast<const int64_t*>(args.inputs[kStep]),
                                      args.state->device};
    for (size_t next = 0; next < members_.size();) {
      cuda::UpdateBatch<kStates> batch{};
      for (; next < members_.size(); ++next) {
        if (!batch.table.HasRoom(members_[next].size, batch.kChunk)) break;
        AddMember(args, next, &batch);
      }
      HT_CUDA_RETURN_IF_ERROR(LaunchUpdate(rule_, scalars, batch, f64_, stream));
    }
    return absl::OkStatus();
  }

 private:
  struct Member {
    int64_t size;
    cuda::CopyType copy;
  };

  void AddMember(const KernelArgs& args, size_t member, cuda::UpdateBatch<kStates>* batch) const {
    const void* const* inputs = args.inputs + member * (kState + kStates);
    void* const* outputs = args.outputs + member * (1 + kStates);
    const int i = batch->table.count;
    batch->param[i] = inputs[kParam];
    batch->grad[i] = inputs[kGrad];
    batch->new_param[i] = outputs[0];
    for (int s = 0; s < kStates; ++s) {
      batch->state[s][i] = inputs[kState + s];
      batch->new_state[s][i] = outputs[1 + s];
    }
    batch->size[i] = members_[member].size;
    batch->copy_type[i] = members_[member].copy;
    if (batch->copy_type[i] != cuda::CopyType::kNone) batch->copy[i] = args.copies[member];
    batch->table.Add(batch->size[i], batch->kChunk);
  }

  Rule rule_;
  bool f64_;
  std::vector<Member> members_;
};

absl::StatusOr<std::unique_ptr<Kernel>> CreateGroup(const std::vector<GroupMember>& members) {
  for (const GroupMember& m : members) {
    if (m.copy.has_value() && !IsLow(*m.copy)) {
      return Unimplemented("a copy in ", Name(*m.copy), "; only f16 and bf16");
    }
  }
  const ir::Node& node = *members[0].node;
  if (node.op().name == "adam_update") {
    return std::unique_ptr<Kernel>(new UpdateKernel<cuda::AdamRule, 2>(members));
  }
  if (node.num_inputs() > kState) {
    return std::unique_ptr<Kernel>(new UpdateKernel<cuda::SgdRule, 1>(members));
  }
  return std::unique_ptr<Kernel>(new UpdateKernel<cuda::SgdRule, 0>(members));
}

// The scalar operands are read once for all.
bool CanGroup(const ir::Node& a, const ir::Node& b) {
  if (a.op().name != b.op().name || !(a.attrs() == b.attrs()) || a.num_inputs() != b.num_inputs() ||
      a.output_type().dtype != b.output_type().dtype) {
    return false;
  }
  for (int port = kLr; port <= kStep; ++port) {
    if (!(a.input(port) == b.input(port))) return false;
  }
  return true;
}

}  // namespace

void Register_cuda_optimizer(KernelRegistry& r) {
  for (const char* op : {"sgd_update", "adam_update"}) {
    KernelCandidate candidate;
    candidate.name = Concat("cuda:native:", op);
    candidate.op = op;
    candidate.device = Device::Kind::kCuda;
    candidate.tier = KernelTier::kNative;
    candidate.dtypes = {DType::kF32, DType::kF64};
    candidate.create = [](const ir::Node& node) {
      return CreateGroup({GroupMember{&node, std::nullopt}});
    };
    candidate.can_group = CanGroup;
    candidate.create_group = CreateGroup;
    r.Add(std::move(candidate));
  }
}

}  // namespace halftone::kernels
