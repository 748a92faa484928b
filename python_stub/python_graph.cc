#include "halftone/python_stub/python_graph.h"

#include <utility>

#include "halftone/graph/nn/trace.h"
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
class Busy {
 public:
  explicit Busy(bool* flag) : flag_(flag) {
    if (*flag) {
      Raise(FailedPrecondition(
          "a graph was called inside its own build(), or by another thread during a call"));
    }
    *flag = true;
  }
  ~Busy() { *flag_ = false; }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;

 private:
  bool* flag_;
};

}  // namespace

nn::Values PythonGraph::build(const nn::Values& in) {
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

const OutputForm& PythonGraph::Prepare(const py::args& inputs) {
  inputs_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    inputs_[i] = ToTensor(inputs[i], Concat("graph @", name(), ": input ", i), inputs_[i]);
  }
  traced_ = false;
  const absl::Status status = compile(inputs_);
  RaiseKept();
  Check(status);
  OutputForm& form = forms_[executable()];
  if (std::exchange(traced_, false)) form = traced_form_;
  return form;
}

void PythonGraph::Compile(const py::args& inputs) {
  const Busy busy(&busy_);
  Prepare(inputs);
}

py::object PythonGraph::Call(const py::args& inputs) {
  const Busy busy(&busy_);
  const OutputForm& form = Prepare(inputs);
  absl::StatusOr<std::vector<Tensor>> outputs = (*this)(inputs_);
  RaiseKept();
  Check(outputs.status());
  // The arrays are copies, so they are waited for in any case: an error of this step is this
  // call's. Other threads of Python run meanwhile; reading an output is safe whatever they do.
  {
    const py::gil_scoped_release release;
    for (const Tensor& output : *outputs) (void)output.raw();
  }
  if (!outputs->empty()) Check(synchronize());
  return Unflatten(form, *outputs);
}

}  // namespace halftone::python
