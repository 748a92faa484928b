// fused: the reference kernels of its ops, one after the other over the whole tensor.
#include <array>

#include "halftone/core/align.h"
#include "halftone/graph/ops/support/fused_body.h"
#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

class ReferenceFused : public Kernel {
 public:
  absl::Status Make(const KernelRegistry& r, const ir::Node& node) {
    HT_ASSIGN_OR_RETURN(const ops::FusedBody body,
                        ops::FusedBody::Parse(node.attrs().GetString("body"), node.num_inputs()));
    ir::Graph graph("body");
    ir::Builder b(&graph);
    std::vector<ir::Expr> inputs;
    for (const ir::Value& input : node.inputs()) {
      inputs.push_back(b.Input("x", input.type()));
      // An input of a graph is plain, but here it lies as the operand does.
      inputs.back().value().node->mutable_output_types()[0].layout = input.type().layout;
    }
    const std::vector<ir::Expr> steps = body.Build(b, inputs);
    HT_RETURN_IF_ERROR(b.status());
    for (const ir::Expr& step : steps) {
      const ir::Node& made = *step.value().node;
      HT_ASSIGN_OR_RETURN(std::unique_ptr<Kernel> kernel,
                          r.CreateNamed(made, "reference:" + made.op().name));
      steps_.push_back({std::move(kernel), body.steps()[steps_.size()].operands, workspace_bytes_});
      workspace_bytes_ += AlignUp(static_cast<size_t>(made.output_type().num_bytes()), 64);
    }
    num_inputs_ = node.num_inputs();
    return absl::OkStatus();
  }

  void Run(const KernelArgs& args) override {
    const auto value = [&](int operand) -> void* {
      if (operand < num_inputs_) return const_cast<void*>(args.inputs[operand]);
      const auto step = static_cast<size_t>(operand - num_inputs_);
      if (step + 1 == steps_.size()) return args.outputs[0];
      return static_cast<char*>(args.workspace) + steps_[step].offset;
    };
    for (size_t s = 0; s < steps_.size(); ++s) {
      std::array<const void*, ops::kMaxFusedInputs> inputs{};
      for (size_t k = 0; k < steps_[s].operands.size(); ++k) {
        inputs[k] = value(steps_[s].operands[k]);
      }
      void* y = value(num_inputs_ + static_cast<int>(s));
      steps_[s].kernel->Run({inputs.data(), &y, nullptr, args.state});
    }
  }

 private:
  struct Step {
    std::unique_ptr<Kernel> kernel;
    std::vector<int> operands;
    size_t offset;  // of its result in the workspace
  };
  int num_inputs_ = 0;
  std::vector<Step> steps_;
};

}  // namespace

void Register_reference_fused(KernelRegistry& r) {
  KernelCandidate candidate;
  candidate.name = "reference:fused";
  candidate.op = "fused";
  candidate.device = Device::Kind::kReference;
  candidate.tier = KernelTier::kReference;
  candidate.dtypes = ir::kAnyDType;
  candidate.create = [&r](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    auto kernel = std::make_unique<ReferenceFused>();
    HT_RETURN_IF_ERROR(kernel->Make(r, node));
    return std::unique_ptr<Kernel>(std::move(kernel));
  };
  r.Add(std::move(candidate));
}

}  // namespace halftone::kernels
