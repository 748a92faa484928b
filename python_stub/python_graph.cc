#include "halftone/python_stub/python_graph.h"

#include <utility>

#include "halftone/graph/nn/trace.h"
#include "halftone/python_stub/interpreter_lock.h"
#include "halftone/python_stub/tracing.h"

namespace halftone::python {
namespace {

nn::Value ToValue(py::handle object, const std::string& where) {
  if (!py::isinstance<nn::Value>(object) && !py::isinstance<nn::Parameter>(object)) {
    RaiseTypeError(Concat("build() returned ", where, " of type ", TypeName(object),
                          "; expected Values: one, a tuple, a list or a dict of them, or None"));
  }
  return py::cast<nn::Value>(object);
}

OutputForm Flatten(py::handle result, std::vector<nn::Value>* values) {
  OutputForm form;
  if (result.is_none()) return form;
  if (py::isinstance<py::dict>(result)) {
    form.kind = OutputForm::Kind::kDict;
    for (const auto& [key, value] : py::reinterpret_borrow<py::dict>(result)) {
      form.keys.push_back(py::cast<std::string>(py::str(key)));
      values->push_back(ToValue(value, "an element"));
    }
  } else if (py::isinstance<py::tuple>(result) || py::isinstance<py::list>(result)) {
    form.kind =
        py::isinstance<py::tuple>(result) ? OutputForm::Kind::kTuple : OutputForm::Kind::kList;
    for (py::handle value : py::reinterpret_borrow<py::sequence>(result)) {
      values->push_back(ToValue(value, "an element"));
    }
  } else {
    form.kind = OutputForm::Kind::kSingle;
    values->push_back(ToValue(result, "an object"));
  }
  form.size = values->size();
  return form;
}

py::object Unflatten(const OutputForm& form, const std::vector<Tensor>& tensors) {
  switch (form.kind) {
    case OutputForm::Kind::kNone:
      return py::none();
    case OutputForm::Kind::kSingle:
      return ToArray(tensors[0]);
    case OutputForm::Kind::kTuple: {
      py::tuple arrays(tensors.size());
      for (size_t i = 0; i < tensors.size(); ++i) arrays[i] = ToArray(tensors[i]);
      return arrays;
    }
    case OutputForm::Kind::kList: {
      py::list arrays;
      for (const Tensor& tensor : tensors) arrays.append(ToArray(tensor));
      return arrays;
    }
    case OutputForm::Kind::kDict: {
      py::dict arrays;
      for (size_t i = 0; i < tensors.size(); ++i) arrays[Text(form.keys[i])] = ToArray(tensors[i]);
      return arrays;
    }
  }
  return py::none();
}

// Ends at the end of a scope, also by an exception.
class Calling {
 public:
  Calling(bool* flag, const std::string& graph) : flag_(flag) {
    if (*flag) {
      Raise(FailedPrecondition("graph @", graph, " was called inside its own build()"));
    }
    *flag = true;
  }
  ~Calling() { *flag_ = false; }
  Calling(const Calling&) = delete;
  Calling& operator=(const Calling&) = delete;

 private:
  bool* flag_;
};

}  // namespace

GraphLock::GraphLock(const PythonGraph& graph) : lock_(new runtime::StateLock(graph.TryLock())) {
  if (!lock_->held()) {
    waited_for_ = py::cast(&graph, py::return_value_policy::reference);
    WithoutInterpreterLock([&] { lock_.reset(new runtime::StateLock(graph.Lock())); });
  }
  Check(lock_->status());
}

nn::Values PythonGraph::build(const nn::Values& in) {
  const InterpreterLock interpreter;
  try {
    nn::internal::Trace::Current()->set_locate(PythonLocation);
    py::tuple arguments(in.size());
    for (size_t i = 0; i < in.size(); ++i) arguments[i] = py::cast(in.vector()[i]);
    const py::object self = py::cast(this, py::return_value_policy::reference);
    const py::object result = self.attr("build")(*arguments);
    std::vector<nn::Value> values;
    traced_form_ = Flatten(result, &values);
    traced_ = true;
    return nn::Values(std::move(values));
  } catch (...) {
    KeepException();
    return {};
  }
}

void PythonGraph::TakeInputs(const py::args& inputs) {
  inputs_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs_[i] = ToTensor(inputs[i], Concat("graph @", name(), ": input ", i), inputs_[i]);
  }
}

absl::StatusOr<const OutputForm*> PythonGraph::CompileForInputs() {
  traced_ = false;
  HT_RETURN_IF_ERROR(compile(inputs_));
  OutputForm& form = forms_[compiled_graph()];
  if (std::exchange(traced_, false)) form = traced_form_;
  return &form;
}

void PythonGraph::ExportOnnx(const std::string& path, const py::args& inputs) {
  CheckFile(ForEvaluation(inputs, [&] { return export_onnx(path, inputs_); }));
}

std::unique_ptr<runtime::GraphFile> PythonGraph::InferenceModel(const py::args& inputs) {
  std::unique_ptr<runtime::GraphFile> file;
  Check(ForEvaluation(inputs, [&]() -> absl::Status {
    HT_ASSIGN_OR_RETURN(ir::Model model, inference_model(inputs_));
    HT_ASSIGN_OR_RETURN(file, runtime::GraphFile::Create(std::move(model), device(), config.seed));
    return absl::OkStatus();
  }));
  return file;
}

absl::Status PythonGraph::ForEvaluation(const py::args& inputs,
                                        absl::FunctionRef<absl::Status()> then) {
  const GraphLock lock(*this);
  const Calling calling(&calling_, name());
  TakeInputs(inputs);
  const bool training = is_training();
  const absl::Status status = WithoutInterpreterLock([&]() -> absl::Status {
    // Compiled here, for the form of its outputs to be known: later calls may find the step.
    eval();
    const absl::Status compiled = CompileForInputs().status();
    if (training) train();
    return compiled.ok() ? then() : compiled;
  });
  RaiseKept();
  return status;
}

void PythonGraph::Compile(const py::args& inputs) {
  WithInputs(inputs, [](absl::Span<const Tensor>) { return absl::OkStatus(); });
}

void PythonGraph::WithInputs(const py::args& inputs,
                             absl::FunctionRef<absl::Status(absl::Span<const Tensor>)> f) {
  const GraphLock lock(*this);
  const Calling calling(&calling_, name());
  TakeInputs(inputs);
  const absl::Status status = WithoutInterpreterLock([&]() -> absl::Status {
    HT_RETURN_IF_ERROR(CompileForInputs().status());
    return f(inputs_);
  });
  RaiseKept();
  Check(status);
}

py::object PythonGraph::Call(const py::args& inputs) {
  const GraphLock lock(*this);
  const Calling calling(&calling_, name());
  TakeInputs(inputs);
  const OutputForm* form = nullptr;
  std::vector<Tensor> outputs;
  const absl::Status status = WithoutInterpreterLock([&]() -> absl::Status {
    HT_ASSIGN_OR_RETURN(form, CompileForInputs());
    HT_ASSIGN_OR_RETURN(outputs, (*this)(inputs_));
    // The arrays are copies, so they are waited for in any case: an error of this step is this
    // call's.
    return outputs.empty() ? absl::OkStatus() : synchronize();
  });
  RaiseKept();
  Check(status);
  return Unflatten(*form, outputs);
}

}  // namespace halftone::python
