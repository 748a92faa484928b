#include "halftone/tests/support/step_runner.h"

#include "halftone/graph/ir/text.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/autodiff.h"
#include "halftone/passes/decompose_unsupported.h"
#include "halftone/passes/fixed_targets.h"
#include "halftone/passes/insert_amp_casts.h"
#include "halftone/passes/insert_optimizers.h"
#include "halftone/passes/pass_manager.h"
#include "halftone/passes/scale_losses.h"
#include "halftone/passes/trim_amp_islands.h"
#include "halftone/passes/update_scalers.h"
#include "halftone/passes/verify_amp_dtypes.h"

namespace halftone::testing {
namespace {

template <typename T>
T ValueOrDie(absl::StatusOr<T> value, const char* what) {
  const std::string message = Message(value.status());
  if (!value.ok()) internal::CheckFailed(__FILE__, __LINE__, what, message.c_str());
  return *std::move(value);
}

std::vector<Tensor> InputsOf(const ir::Node& node,
                             const std::map<const ir::Node*, std::vector<Tensor>>& values) {
  std::vector<Tensor> inputs;
  for (ir::Value v : node.inputs()) inputs.push_back(values.at(v.node)[v.index]);
  return inputs;
}

}  // namespace

absl::StatusOr<StepRunner> StepRunner::Compile(const std::string& text, const std::string& target) {
  StepRunner runner;
  HT_ASSIGN_OR_RETURN(runner.graph_, ir::Parse(text));
  passes::PassManagerOptions options;
  options.check_changed = true;
  passes::PassManager manager(options);
  manager.Add(passes::MakeInsertAmpCasts());
  manager.Add(passes::MakeVerifyAmpDTypes());
  manager.Add(passes::MakeTrimAmpIslands());
  manager.Add(passes::MakeAutodiff());
  manager.Add(passes::MakeScaleLosses());
  manager.Add(passes::MakeInsertOptimizers());
  manager.Add(passes::MakeUpdateScalers());
  manager.Add(passes::MakeDecomposeUnsupported());
  passes::PassContext context;
  HT_ASSIGN_OR_RETURN(context.target, passes::FindFixedTarget(target));
  HT_RETURN_IF_ERROR(manager.Run(*runner.graph_, context));
  runner.notes_ = context.notes;
  for (const ir::Variable& variable : runner.graph_->variables()) {
    if (variable.init.kind != ir::Initializer::Kind::kConstant) continue;
    runner.state_[variable.name] =
        Tensor::Full(variable.type.dtype, variable.type.shape, variable.init.a);
  }
  return runner;
}

StepRunner StepRunner::CompileOrDie(const std::string& text, const std::string& target) {
  return ValueOrDie(Compile(text, target), "StepRunner::Compile");
}

absl::StatusOr<TensorMap> StepRunner::Step(const TensorMap& inputs) {
  const kernels::ReferenceEvaluator evaluator(run_count_++);
  std::map<const ir::Node*, std::vector<Tensor>> values;
  TensorMap committed;
  auto find = [](const TensorMap& from, const std::string& name,
                 const ir::Node& node) -> absl::StatusOr<Tensor> {
    auto it = from.find(name);
    if (it == from.end()) return NotFound(node.Label(), ": no value for \"", name, "\"");
    if (it->second.dtype() != node.output_type().dtype ||
        it->second.shape() != node.output_type().shape) {
      return InvalidArgument(node.Label(), ": \"", name, "\" is ", it->second.TypeString(),
                             "; expected ", node.output_type());
    }
    return it->second;
  };
  for (const auto& node : graph_->nodes()) {
    const std::string& op = node->op().name;
    if (op == "input") {
      HT_ASSIGN_OR_RETURN(Tensor value, find(inputs, node->attrs().GetString("name"), *node));
      values[node.get()] = {value};
    } else if (op == "variable") {
      HT_ASSIGN_OR_RETURN(Tensor value, find(state_, node->attrs().GetString("name"), *node));
      values[node.get()] = {value};
    } else if (op == "commit") {
      committed[node->attrs().GetString("variable")] = InputsOf(*node, values)[0];
    } else {
      HT_ASSIGN_OR_RETURN(values[node.get()], evaluator.Evaluate(*node, InputsOf(*node, values)));
    }
  }
  TensorMap outputs;
  for (size_t i = 0; i < graph_->outputs().size(); ++i) {
    const ir::Output& output = graph_->outputs()[i];
    outputs[output.name.empty() ? Concat(i) : output.name] =
        values.at(output.value.node)[output.value.index];
  }
  for (auto& [name, value] : committed) state_[name] = value.Clone();
  return outputs;
}

TensorMap StepRunner::StepOrDie(const TensorMap& inputs) {
  return ValueOrDie(Step(inputs), "StepRunner::Step");
}

double StepRunner::at(const std::string& variable) const {
  auto it = state_.find(variable);
  HT_CHECK(it != state_.end(), "no such variable");
  return it->second.item();
}

Tensor F32(double value) { return Tensor::Scalar(DType::kF32, value); }

Tensor F32(std::initializer_list<double> values) {
  return Tensor::Of(DType::kF32, Shape{static_cast<int64_t>(values.size())}, values);
}

}  // namespace halftone::testing
