#include "halftone/graph/ir/builder.h"

#include <algorithm>

#include "halftone/graph/ir/infer.h"

namespace halftone::ir {
namespace {

// As many invalid values as callers may index.
std::vector<Expr> Poison(Builder* builder, const OpRecord* op, size_t num_inputs) {
  size_t count = op == nullptr ? 1 : op->outputs.size();
  if (op != nullptr && op->is_variadic()) count = std::max(count, num_inputs);
  return std::vector<Expr>(count, Expr(builder, Value{}));
}

absl::Status CheckValues(const Graph& graph, const OpRecord& op, const std::string& label,
                         const std::vector<Expr>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string port = i < op.inputs.size()
                                 ? Concat("input ", i, " (", op.inputs[i].name, ")")
                                 : Concat("input ", i);
    const Value v = inputs[i].value();
    if (!v.valid()) return InvalidArgument(label, ": ", port, " is not a value");
    if (&v.node->graph() != &graph) {
      return InvalidArgument(label, ": ", port, " = ", v.ToString(), " belongs to graph @",
                             v.node->graph().name(), "; expected a value of @", graph.name());
    }
    if (v.index < 0 || v.index >= v.node->num_outputs()) {
      return InvalidArgument(label, ": ", port, " is output ", v.index, " of ", v.node->Label(),
                             ", which has ", v.node->num_outputs());
    }
  }
  return absl::OkStatus();
}

}  // namespace

void Builder::Fail(absl::Status status) {
  if (!status_.ok() || status.ok()) return;
  const std::string where = location_.ToString();
  status_ = where.empty() ? status : Annotate(status, where + ": ");
}

std::vector<Expr> Builder::Make(const std::string& name, const std::vector<Expr>& inputs,
                                Attributes attrs) {
  const std::string hint = std::move(name_hint_);
  name_hint_.clear();
  const OpRecord* op = OpRegistry::Global().Find(name);
  if (!status_.ok()) return Poison(this, op, inputs.size());
  const std::string label = hint.empty() ? name : name + "(%" + hint + ")";
  const auto fail = [&](absl::Status status) {
    Fail(std::move(status));
    return Poison(this, op, inputs.size());
  };
  if (op == nullptr) return fail(NotFound(label, ": no such op"));
  if (absl::Status status = CheckValues(*graph_, *op, label, inputs); !status.ok()) {
    return fail(std::move(status));
  }
  std::vector<Value> values;
  std::vector<ValueType> types;
  values.reserve(inputs.size());
  types.reserve(inputs.size());
  for (const Expr& input : inputs) {
    values.push_back(input.value());
    types.push_back(input.type());
  }
  if (absl::Status status = CompleteAttributes(*op, label, attrs); !status.ok()) {
    return fail(std::move(status));
  }
  auto outputs = InferTypes(*op, label, types, attrs);
  if (!outputs.ok()) return fail(outputs.status());

  Node* node = graph_->AddNode(op, std::move(values), std::move(attrs), *std::move(outputs),
                               hint.empty() ? name : hint, scope_);
  node->location = location_;
  node->provenance = provenance_;
  node->amp_request = amp_request_;
  node->recompute = recompute_;
  std::vector<Expr> results;
  results.reserve(node->num_outputs());
  for (int i = 0; i < node->num_outputs(); ++i) results.emplace_back(this, node->output(i));
  return results;
}

Expr Builder::Op(const std::string& op, const std::vector<Expr>& inputs, Attributes attrs) {
  std::vector<Expr> results = Make(op, inputs, std::move(attrs));
  return results.empty() ? Expr(this, Value{}) : results[0];
}

Node* Builder::Root(const std::string& op, const std::vector<Expr>& inputs, Attributes attrs) {
  const size_t before = graph_->nodes().size();
  Make(op, inputs, std::move(attrs));
  return graph_->nodes().size() > before ? graph_->nodes().back().get() : nullptr;
}

Expr Builder::Input(const std::string& name, const ValueType& type) {
  if (name_hint_.empty()) name_hint_ = name;
  const absl::Span<const int64_t> dims = type.shape.dims();
  return Op("input", {},
            {{"name", name},
             {"dtype", type.dtype},
             {"shape", std::vector<int64_t>(dims.begin(), dims.end())}});
}

Expr Builder::Var(const Variable& variable) {
  if (!status_.ok()) return Expr(this, Value{});
  if (const Variable* declared = graph_->FindVariable(variable.name); declared != nullptr) {
    if (!(*declared == variable)) {
      Fail(InvalidArgument("variable \"", variable.name, "\" is declared again as ", variable.type,
                           " ", Name(variable.kind), " ", variable.init.ToString(), "; it is ",
                           declared->type, " ", Name(declared->kind), " ",
                           declared->init.ToString()));
      return Expr(this, Value{});
    }
    if (Node* node = graph_->FindVariableNode(variable.name)) {
      name_hint_.clear();
      return Expr(this, node->output());
    }
  }
  if (name_hint_.empty()) name_hint_ = variable.name;
  Expr value = Op("variable", {}, ToAttributes(variable));
  if (value.valid() && graph_->FindVariable(variable.name) == nullptr) {
    Fail(graph_->AddVariable(variable));
  }
  return value;
}

Expr Builder::Constant(const Tensor& value) { return Op("constant", {}, {{"value", value}}); }

Expr Builder::Scalar(DType dtype, double value) { return Constant(Tensor::Scalar(dtype, value)); }

Expr Builder::ScalarLike(Expr like, double value) {
  if (!like.valid()) {
    Fail(InvalidArgument("constant ", value, ": the value it should be like is not a value"));
    return Expr(this, Value{});
  }
  return Scalar(like.dtype(), value);
}

void Builder::Commit(const std::string& variable, Expr value) {
  if (!status_.ok()) return;
  const Variable* declared = graph_->FindVariable(variable);
  if (declared == nullptr) {
    return Fail(NotFound("commit \"", variable, "\": no such variable"));
  }
  if (value.valid() &&
      (value.dtype() != declared->type.dtype || value.shape() != declared->type.shape)) {
    return Fail(InvalidArgument("commit \"", variable, "\": value ", value.value().ToString(),
                                " is ", value.type(), "; expected ", declared->type));
  }
  if (graph_->FindCommit(variable) != nullptr) {
    return Fail(absl::AlreadyExistsError(
        Concat("commit \"", variable, "\": the variable has a commit already")));
  }
  Root("commit", {value}, {{"variable", variable}});
}

Expr Builder::Cast(Expr x, DType to) {
  if (x.valid() && x.dtype() == to) return x;
  return Op("cast", {x}, {{"to", to}});
}

}  // namespace halftone::ir
