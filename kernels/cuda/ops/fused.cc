// fused: its body as a program for the device.
#include "halftone/kernels/cuda/ops/fused.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "halftone/core/check.h"
#include "halftone/graph/ops/support/fused_body.h"
#include "halftone/kernels/cuda/device/strided_plan.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/formula.h"

namespace halftone::kernels {
namespace {

using cuda::FusedOperand;
using cuda::FusedParams;
using cuda::FusedReach;

static_assert(ops::kMaxFusedInputs <= cuda::kFusedInputs);
static_assert(ops::kMaxFusedSteps <= cuda::kFusedSteps);

constexpr const char* kBatchNormApply = "batch_norm_apply";

constexpr ir::DTypeSet kFusedDTypes{DType::kF32, DType::kF16, DType::kBF16, DType::kBool};

// Puts the steps of a body in the order in which fewest results wait: of several operands that are computed,
// the one that needs the most slots first. Source: Sethi, Ullman, "The generation of optimal code for
// arithmetic expressions", 1970.
class Program {
 public:
  Program(const ops::FusedBody& body, const std::vector<ir::ValueType>& types)
      : body_(body), types_(types), inputs_(body.num_inputs()), needs_(body.steps().size()) {
    for (size_t s = 0; s < body.steps().size(); ++s) {
      std::vector<int> needs;
      for (const size_t child : ChildrenOf(s)) needs.push_back(needs_[child]);
      // What is computed k-th finds k results waiting.
      for (size_t k = 0; k < needs.size(); ++k) {
        needs_[s] = std::max(needs_[s], needs[k] + static_cast<int>(k));
      }
    }
  }

  // Errors: Unimplemented, a step that is no formula of f32.
  absl::Status WriteTo(FusedParams& params) {
    params_ = &params;
    HT_RETURN_IF_ERROR(Write(body_.steps().size() - 1, /*wait=*/false).status());
    return absl::OkStatus();
  }

 private:
  // The steps that are operands of step s, the most demanding first.
  std::vector<size_t> ChildrenOf(size_t s) const {
    std::vector<size_t> children;
    for (const int operand : body_.steps()[s].operands) {
      if (operand >= inputs_) children.push_back(static_cast<size_t>(operand - inputs_));
    }
    std::stable_sort(children.begin(), children.end(),
                     [this](size_t a, size_t b) { return needs_[a] > needs_[b]; });
    return children;
  }

  // Where its reader finds it. `wait`: other steps come in between.
  absl::StatusOr<FusedOperand> Write(size_t s, bool wait) {
    const ops::FusedStep& from = body_.steps()[s];
    const std::vector<size_t> children = ChildrenOf(s);
    std::vector<FusedOperand> found(body_.steps().size());
    const int waiting = waiting_;
    for (size_t k = 0; k < children.size(); ++k) {
      HT_ASSIGN_OR_RETURN(found[children[k]], Write(children[k], k + 1 < children.size()));
    }
    waiting_ = waiting;  // it has read them
    cuda::FusedStep step;
    HT_RETURN_IF_ERROR(SetFormula(s, step));
    for (const int operand : from.operands) {
      step.operand[step.operands++] =
          operand >= inputs_
              ? found[static_cast<size_t>(operand - inputs_)]
              : FusedOperand{FusedOperand::Kind::kInput, static_cast<uint8_t>(operand)};
    }
    if (swapped_) std::swap(step.operand[0], step.operand[1]);
    FusedOperand at;
    if (wait) {
      HT_CHECK(waiting_ < cuda::kFusedSlots, "a fused body needs too many slots");
      at = {FusedOperand::Kind::kSlot, static_cast<uint8_t>(waiting_)};
      step.slot = static_cast<int8_t>(waiting_++);
      params_->slots = std::max(params_->slots, waiting_);
    }
    params_->step[params_->steps++] = step;
    return at;
  }

  absl::Status SetFormula(size_t s, cuda::FusedStep& step) {
    const ops::FusedStep& from = body_.steps()[s];
    step.dtype = types_[s].dtype;
    swapped_ = false;
    if (!kFusedDTypes.Contains(step.dtype))
      return Unimplemented(from.op->name, " in ", Name(step.dtype));
    if (from.op->name == "cast") return absl::OkStatus();
    if (from.op->name == "where" || from.op->name == kBatchNormApply) {
      step.kind = from.op->name == "where" ? cuda::FusedStep::Kind::kSelect
                                           : cuda::FusedStep::Kind::kBatchNorm;
      return absl::OkStatus();
    }
    const cuda::FormulaRow* const row = cuda::FindFormula(FormulaOf(*from.op, from.attrs));
    if (row == nullptr) return Unimplemented(from.op->name, " in a body");
    step.formula = row->formula;
    swapped_ = row->swapped;
    const FormulaNumbers numbers = NumbersOf(*from.op, from.attrs);
    for (size_t i = 0; i < numbers.size(); ++i) step.numbers[i] = static_cast<float>(numbers[i]);
    return absl::OkStatus();
  }

  const ops::FusedBody& body_;
  const std::vector<ir::ValueType>& types_;  // of the steps
  const int inputs_;
  std::vector<int> needs_;  // slots, by step
  FusedParams* params_ = nullptr;
  int waiting_ = 0;  // slots in use
  bool swapped_ = false;
};

// Whether a body may have it: what is not built in has no formula here.
bool IsStep(const std::string& op) {
  return op == "cast" || op == "where" || op == kBatchNormApply ||
         cuda::FindFormula(op) != nullptr || cuda::FindFormula(op + ":none") != nullptr;
}

absl::StatusOr<FusedReach> ReachOf(ops::FusedAccess::Kind kind) {
  switch (kind) {
    case ops::FusedAccess::Kind::kSame:
      return FusedReach::kSame;
    case ops::FusedAccess::Kind::kRow:
      return FusedReach::kRow;
    case ops::FusedAccess::Kind::kOne:
      return FusedReach::kOne;
    case ops::FusedAccess::Kind::kChannels:
      break;
  }
  return Unimplemented("numbers of channels in blocks");
}

absl::StatusOr<FusedParams> PlanBody(const ir::Node& node, const std::string& text) {
  HT_ASSIGN_OR_RETURN(const ops::FusedBody body, ops::FusedBody::Parse(text, node.num_inputs()));
  std::vector<ir::ValueType> inputs;
  for (const ir::Value& input : node.inputs()) inputs.push_back(input.type());
  HT_ASSIGN_OR_RETURN(const std::vector<ir::ValueType> types, body.Infer(node.Label(), inputs));
  FusedParams params;
  params.size = node.output_type().num_elements();
  params.width = 4;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!kFusedDTypes.Contains(inputs[i].dtype))
      return Unimplemented("input of ", Name(inputs[i].dtype));
    // Inference of the body has seen that there is one.
    const ops::FusedAccess access = *ops::AccessOf(inputs[i], node.output_type());
    params.input[i].dtype = inputs[i].dtype;
    HT_ASSIGN_OR_RETURN(params.input[i].reach, ReachOf(access.kind));
    if (access.kind != ops::FusedAccess::Kind::kRow || access.period == 0) continue;
    params.period = cuda::WideDivisorOf(access.period);
    if (access.period % params.width != 0) params.width = 1;
  }
  HT_RETURN_IF_ERROR(Program(body, types).WriteTo(params));
  return params;
}

absl::StatusOr<FusedParams> PlanFused(const ir::Node& node) {
  return PlanBody(node, node.attrs().GetString("body"));
}
// Of one step, where its numbers are rows of what it normalises: channels-last, or of all its shape.
absl::StatusOr<FusedParams> PlanBatchNormApply(const ir::Node& node) {
  for (const ir::Value& input : node.inputs()) {
    if (ops::AccessOf(input.type(), node.output_type()).has_value()) continue;
    return Unimplemented(input.type(), " is no row of ", node.output_type());
  }
  return PlanBody(node, Concat(kBatchNormApply, "(%0, %1, %2, %3, %4)"));
}

class FusedKernel : public CudaKernel {
 public:
  FusedKernel(const ir::Node& node, const FusedParams& params)
      : inputs_(node.num_inputs()), params_(params) {}

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (params_.size == 0) return absl::OkStatus();
    FusedParams params = params_;
    params.y = args.outputs[0];
    if (!cuda::Aligned16({params.y})) params.width = 1;
    for (int i = 0; i < inputs_; ++i) {
      params.input[i].x = args.inputs[i];
      if (!cuda::Aligned16({args.inputs[i]})) params.width = 1;
    }
    HT_CUDA_RETURN_IF_ERROR(LaunchFused(params, stream));
    return absl::OkStatus();
  }

 private:
  int inputs_;
  FusedParams params_;
};

}  // namespace

void Register_cuda_fused(KernelRegistry& r) {
  const auto add = [&r](const std::string& how, const std::string& op,
                        absl::StatusOr<FusedParams> (*plan)(const ir::Node&)) {
    KernelCandidate candidate;
    candidate.name = Concat("cuda:", how, ":", op);
    candidate.op = op;
    candidate.device = Device::Kind::kCuda;
    candidate.dtypes = kFusedDTypes;
    candidate.supports = [plan](const ir::Node& node) { return plan(node).status(); };
    candidate.create = [plan](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
      HT_ASSIGN_OR_RETURN(const FusedParams params, plan(node));
      return std::make_unique<FusedKernel>(node, params);
    };
    if (op == "fused") candidate.takes_op = IsStep;
    r.Add(std::move(candidate));
  };
  add("native", "fused", PlanFused);
  add("fused", kBatchNormApply, PlanBatchNormApply);
}

}  // namespace halftone::kernels
