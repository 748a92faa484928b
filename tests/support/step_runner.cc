#include "halftone/tests/support/step_runner.h"

#include "halftone/graph/ir/text.h"
#include "halftone/graph/runtime/arena.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/passes/amp/scale_losses.h"
#include "halftone/passes/amp/trim_amp_islands.h"
#include "halftone/passes/amp/update_scalers.h"
#include "halftone/passes/amp/verify_amp_dtypes.h"
#include "halftone/passes/autodiff/autodiff.h"
#include "halftone/passes/autodiff/insert_optimizers.h"
#include "halftone/passes/pass_manager.h"
#include "halftone/passes/rewrite/decompose_unsupported.h"
#include "halftone/tests/support/tensors.h"

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

std::string OutputName(const ir::Graph& graph, size_t i) {
  const std::string& name = graph.outputs()[i].name;
  return name.empty() ? Concat(i) : name;
}

absl::StatusOr<Tensor> FindValue(const TensorMap& from, const std::string& name,
                                 const ir::ValueType& type) {
  auto it = from.find(name);
  if (it == from.end()) return NotFound("no value for \"", name, "\"");
  if (it->second.dtype() != type.dtype || it->second.shape() != type.shape) {
    return InvalidArgument("\"", name, "\" is ", it->second.TypeString(), "; expected ", type);
  }
  return it->second;
}

// What the two runs may differ by, relative to the largest element: rounding in the narrowest dtype
// of the graph, a few times over.
double ToleranceOf(const ir::Graph& graph) {
  for (const auto& node : graph.nodes()) {
    for (int i = 0; i < node->num_outputs(); ++i) {
      if (IsLow(node->output_type(i).dtype)) return 2e-2;
    }
  }
  return 1e-5;
}

}  // namespace

absl::StatusOr<StepRunner> StepRunner::Compile(const std::string& text, const std::string& target) {
  StepRunner runner;
  HT_ASSIGN_OR_RETURN(runner.graph_, ir::Parse(text));
  HT_RETURN_IF_ERROR(runner.CompileForCpu(runner.graph_->Clone()));
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
  HT_ASSIGN_OR_RETURN(context.target, kernels::FindFixedTarget(target));
  HT_RETURN_IF_ERROR(manager.Run(*runner.graph_, context));
  runner.notes_ = context.notes;
  for (const ir::Variable& variable : runner.graph_->variables()) {
    if (variable.init.kind != ir::Initializer::Kind::kConstant) continue;
    runner.state_[variable.name] =
        Tensor::Full(variable.type.dtype, variable.type.shape, variable.init.a);
  }
  return runner;
}

absl::Status StepRunner::CompileForCpu(std::unique_ptr<ir::Graph> graph) {
  store_ = std::make_unique<runtime::VariableStore>();
  HT_ASSIGN_OR_RETURN(executable_, runtime::Compile(std::move(graph), {}, *store_,
                                                    std::make_shared<runtime::Arena>()));
  return absl::OkStatus();
}

StepRunner StepRunner::CompileOrDie(const std::string& text, const std::string& target) {
  return ValueOrDie(Compile(text, target), "StepRunner::Compile");
}

absl::StatusOr<TensorMap> StepRunner::Step(const TensorMap& inputs) {
  HT_ASSIGN_OR_RETURN(Result reference, RunReference(inputs));
  HT_ASSIGN_OR_RETURN(Result cpu, RunCpu(inputs));
  ++run_count_;
  HT_RETURN_IF_ERROR(Compare(reference.outputs, cpu.outputs));
  HT_RETURN_IF_ERROR(Compare(reference.committed, cpu.committed));
  for (auto& [name, value] : cpu.committed) state_[name] = value;
  return cpu.outputs;
}

absl::StatusOr<StepRunner::Result> StepRunner::RunReference(const TensorMap& inputs) {
  const kernels::ReferenceEvaluator evaluator(run_count_);
  std::map<const ir::Node*, std::vector<Tensor>> values;
  Result result;
  for (const auto& node : graph_->nodes()) {
    const std::string& op = node->op().name;
    if (op == "input" || op == "variable") {
      HT_ASSIGN_OR_RETURN(
          Tensor value, FindValue(op == "input" ? inputs : state_, node->attrs().GetString("name"),
                                  node->output_type()));
      values[node.get()] = {value};
    } else if (op == "commit") {
      result.committed[node->attrs().GetString("variable")] = InputsOf(*node, values)[0].Clone();
    } else {
      HT_ASSIGN_OR_RETURN(values[node.get()], evaluator.Evaluate(*node, InputsOf(*node, values)));
    }
  }
  for (size_t i = 0; i < graph_->outputs().size(); ++i) {
    const ir::Value value = graph_->outputs()[i].value;
    result.outputs[OutputName(*graph_, i)] = values.at(value.node)[value.index];
  }
  return result;
}

absl::StatusOr<StepRunner::Result> StepRunner::RunCpu(const TensorMap& inputs) {
  for (const auto& [name, value] : state_) {
    if (const auto storage = store_->Find(name)) HT_RETURN_IF_ERROR(storage->Assign(value));
  }
  std::vector<Tensor> in, out;
  for (const ir::Node* node : graph_->inputs()) {
    HT_ASSIGN_OR_RETURN(Tensor value,
                        FindValue(inputs, node->attrs().GetString("name"), node->output_type()));
    in.push_back(value);
  }
  for (const ir::ValueType& type : executable_->output_types()) {
    out.push_back(Tensor::Empty(type.dtype, type.shape));
  }
  std::vector<const void*> in_pointers;
  std::vector<void*> out_pointers;
  for (const Tensor& t : in) in_pointers.push_back(t.raw());
  for (const Tensor& t : out) out_pointers.push_back(t.raw());
  HT_RETURN_IF_ERROR(executable_->Run(in_pointers.data(), out_pointers.data(), run_count_));
  Result result;
  for (size_t i = 0; i < out.size(); ++i) result.outputs[OutputName(*graph_, i)] = out[i];
  for (const ir::Node* commit : executable_->graph().commits()) {
    const std::string& name = commit->attrs().GetString("variable");
    result.committed[name] = store_->Find(name)->value().Clone();
  }
  return result;
}

absl::Status StepRunner::Compare(const TensorMap& reference, const TensorMap& cpu) const {
  const double tolerance = ToleranceOf(*graph_);
  for (const auto& [name, value] : cpu) {
    auto it = reference.find(name);
    if (it == reference.end())
      return Internal("\"", name, "\": the CPU gives it, the reference not");
    const Tensor& expected = it->second;
    if (value.dtype() != expected.dtype() || value.shape() != expected.shape()) {
      return Internal("\"", name, "\": ", value.TypeString(), " on the CPU, ",
                      expected.TypeString(), " by reference");
    }
    const double error = MaxRelError(value, expected);
    if (error > tolerance) {
      return Internal("\"", name, "\": the CPU differs from the reference by ", error,
                      " of the largest element; tolerance ", tolerance);
    }
  }
  return absl::OkStatus();
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
