#include <functional>

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/handles.h"
#include "halftone/graph/nn/parameter.h"
#include "halftone/graph/nn/trace.h"
#include "halftone/python_stub/arrays.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/interpreter_lock.h"
#include "halftone/python_stub/tracing.h"

namespace halftone::python {
namespace {

using BinaryFunction = nn::Value (*)(nn::Located, nn::Located);

// An operator method of Value or Parameter: NotImplemented for operands of other types lets Python
// try the other side.
template <typename T, BinaryFunction kFunction, bool kReflected = false>
py::object Operator(const T& self, py::handle other) {
  if (!IsOperand(other)) return py::reinterpret_borrow<py::object>(Py_NotImplemented);
  RequireTrace();
  const nn::Located mine(self);
  const nn::Located theirs = ToOperand(other);
  const nn::Value result = kReflected ? kFunction(theirs, mine) : kFunction(mine, theirs);
  RaiseTraceError();
  return py::cast(result);
}

nn::Value Product(const nn::Value& a, const nn::Value& b) { return nn::matmul(a, b); }

// A parameter takes part in arithmetic as its value does.
template <typename T>
void BindOperators(py::class_<T>& type) {
  type.def("__add__", &Operator<T, nn::add>)
      .def("__radd__", &Operator<T, nn::add, true>)
      .def("__sub__", &Operator<T, nn::sub>)
      .def("__rsub__", &Operator<T, nn::sub, true>)
      .def("__mul__", &Operator<T, nn::mul>)
      .def("__rmul__", &Operator<T, nn::mul, true>)
      .def("__truediv__", &Operator<T, nn::div>)
      .def("__rtruediv__", &Operator<T, nn::div, true>)
      .def("__pow__", &Operator<T, nn::pow>)
      .def("__rpow__", &Operator<T, nn::pow, true>)
      .def("__lt__", &Operator<T, nn::less>)
      .def("__le__", &Operator<T, nn::less_equal>)
      .def("__gt__", &Operator<T, nn::greater>)
      .def("__ge__", &Operator<T, nn::greater_equal>)
      .def("__matmul__", Traced(+[](const T& a, const nn::Value& b) { return Product(a, b); }),
           py::is_operator())
      .def("__neg__", Traced(+[](const T& x) { return nn::neg(nn::Value(x)); }))
      .def("__abs__", Traced(+[](const T& x) { return nn::abs(nn::Value(x)); }))
      .def("__bool__", [](const T&) -> bool {
        RaiseTypeError(
            "a Value has no content while build() describes the step; nn.where chooses by value");
      });
  // NumPy then leaves array + value to the other side, which says what is wrong.
  type.attr("__array_ufunc__") = py::none();
}

// Elementwise, as in NumPy and PyTorch. __hash__ first: Python drops it from a class that has
// __eq__.
void BindEquality(py::class_<nn::Value>& value) {
  value.def("__hash__", [](py::handle self) { return std::hash<PyObject*>()(self.ptr()); })
      .def("__eq__", &Operator<nn::Value, nn::equal>)
      .def("__ne__", &Operator<nn::Value, nn::not_equal>);
}

// Outside build() parameters have no values to compare: there two are equal that are the same
// tensor, so that they can be looked up and serve as keys.
template <BinaryFunction kFunction, bool kEqual>
py::object Compare(const nn::Parameter& self, py::handle other) {
  if (nn::internal::Trace::Current() == nullptr && py::isinstance<nn::Parameter>(other)) {
    const bool same = py::cast<nn::Parameter>(other).storage() == self.storage();
    return py::bool_(same == kEqual);
  }
  return Operator<nn::Parameter, kFunction>(self, other);
}

void BindEquality(py::class_<nn::Parameter>& parameter) {
  parameter
      .def("__hash__",
           [](const nn::Parameter& p) { return std::hash<const void*>()(p.storage().get()); })
      .def("__eq__", &Compare<nn::equal, true>)
      .def("__ne__", &Compare<nn::not_equal, false>);
}

nn::Parameter FromArray(py::handle data, bool buffer) {
  const Tensor value = ToTensor(data, buffer ? "Buffer" : "Parameter");
  nn::Parameter parameter = buffer ? nn::Parameter::Buffer(value.shape(), {}, value.dtype())
                                   : nn::Parameter(value.shape(), {}, value.dtype());
  Check(parameter.set_value(value));
  return parameter;
}

void BindParameter(py::module_& nn, py::class_<nn::Parameter>& parameter) {
  parameter
      .def(py::init([](const py::object& data, bool requires_grad) {
             nn::Parameter parameter = FromArray(data, false);
             parameter.set_requires_grad(requires_grad);
             return parameter;
           }),
           py::arg("data"), py::arg("requires_grad") = true)
      .def_property_readonly("shape", [](const nn::Parameter& p) { return ToTuple(p.shape()); })
      .def_property_readonly("dtype", [](const nn::Parameter& p) { return Name(p.dtype()); })
      .def_property("requires_grad", &nn::Parameter::requires_grad,
                    &nn::Parameter::set_requires_grad)
      .def(
          "value",
          [](const nn::Parameter& p) {
            return ToArray(Unwrap(WithoutInterpreterLock([&] { return p.get_value(); })));
          },
          "A copy")
      .def(
          "set_value",
          [](nn::Parameter& p, const py::object& value) {
            const Tensor tensor = ToTensor(value, "set_value");
            Check(WithoutInterpreterLock([&] { return p.set_value(tensor); }));
          },
          py::arg("value"))
      .def("__repr__", [](const nn::Parameter& p) {
        return Concat("Parameter(", p.storage()->TypeString(), ")");
      });
  nn.def(
      "Buffer", [](const py::object& data) { return FromArray(data, true); }, py::arg("data"),
      "State that no optimizer touches");
}

// Of a scaler or an optimizer: the name itself, or that of a handle.
std::string ToName(const py::handle& object) {
  const py::object name = py::hasattr(object, "name") ? py::object(object.attr("name"))
                                                      : py::reinterpret_borrow<py::object>(object);
  if (!py::isinstance<py::str>(name)) {
    RaiseTypeError(
        "backward: a scaler or optimizer is neither a handle nor a name; expected what "
        "add_optimizer or add_scaler gave");
  }
  return py::cast<std::string>(name);
}

// Of one, or of several.
std::vector<std::string> ToNames(const py::object& object) {
  if (!py::isinstance<py::iterable>(object) || py::isinstance<py::str>(object)) {
    return {ToName(object)};
  }
  std::vector<std::string> names;
  for (const py::handle item : object) names.push_back(ToName(item));
  return names;
}

}  // namespace

bool IsOperand(py::handle object) {
  return py::isinstance<nn::Value>(object) || py::isinstance<nn::Parameter>(object) ||
         py::isinstance<py::float_>(object) || py::isinstance<py::int_>(object) ||
         py::hasattr(object, "__float__");
}

nn::Located ToOperand(py::handle object) {
  if (py::isinstance<nn::Value>(object)) return {py::cast<nn::Value>(object)};
  if (py::isinstance<nn::Parameter>(object)) return {py::cast<nn::Parameter>(object)};
  if (py::isinstance<py::array>(object)) {
    RaiseTypeError("an operand is a NumPy array; nn.constant(array) makes a Value of it");
  }
  const double number = PyFloat_AsDouble(object.ptr());
  if (PyErr_Occurred() != nullptr) throw py::error_already_set();
  const auto exact = py::isinstance<py::int_>(object)
                         ? py::reinterpret_steal<py::object>(PyLong_FromDouble(number))
                         : py::object();
  if (exact && !exact.equal(object)) {
    Raise(InvalidArgument("the number ", py::cast<std::string>(py::str(object)),
                          " has more digits than a double; expected one that a double holds, or ",
                          "nn.constant of an int64"));
  }
  return {number};
}

void BindValues(py::module_& nn) {
  py::class_<nn::Value> value(nn, "Value", py::is_final(), "A tensor of the step that is traced");
  py::class_<nn::Parameter> parameter(nn, "Parameter", py::is_final(),
                                      "A tensor that steps may change");
  BindParameter(nn, parameter);
  value.def(py::init([](const nn::Parameter& p) { return nn::Value(p); }), py::arg("parameter"));
  py::implicitly_convertible<nn::Parameter, nn::Value>();
  value.def_property_readonly("shape", [](const nn::Value& v) { return ToTuple(v.shape()); })
      .def_property_readonly("dtype", [](const nn::Value& v) { return Name(v.dtype()); })
      .def_property_readonly("ndim", &nn::Value::rank)
      .def(
          "backward",
          [](const nn::Value& v, const py::object& scaler, const py::object& optimizers) {
            RequireTrace();
            v.backward(nn::BackwardOptions{ToName(scaler), ToNames(optimizers)});
            RaiseTraceError();
          },
          py::arg("scaler") = "", py::arg("optimizers") = py::tuple())
      .def("detach",
           [](const nn::Value& v) {
             RequireTrace();
             const nn::Value y = nn::detach(v);
             RaiseTraceError();
             return y;
           })
      .def("__repr__", [](const nn::Value& v) {
        return v.valid() ? Concat("Value(", Name(v.dtype()), v.shape(), ")")
                         : std::string("Value(of another call of build())");
      });
  BindOperators(value);
  BindEquality(value);
  BindOperators(parameter);
  BindEquality(parameter);
}

}  // namespace halftone::python
