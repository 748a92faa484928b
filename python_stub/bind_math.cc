#include <pybind11/stl.h>

#include "halftone/graph/nn/functional.h"
#include "halftone/python_stub/arrays.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/tracing.h"

namespace halftone::python {
namespace {

using nn::Value;
using Ints = std::vector<int64_t>;

// Axes as Python writes them: None (all), an int, or several.
Ints ToAxes(const py::object& axes) {
  if (axes.is_none()) return {};
  if (py::isinstance<py::int_>(axes)) return {py::cast<int64_t>(axes)};
  return py::cast<Ints>(axes);
}

template <Value (*kFunction)(nn::Located, nn::Located)>
Value Binary(const py::object& a, const py::object& b) {
  return kFunction(ToOperand(a), ToOperand(b));
}

template <Value (*kFunction)(const Value&, nn::Loc)>
Value Unary(const Value& x) {
  return kFunction(x, nn::Loc::current());
}

void BindElementwise(py::module_& m) {
  const auto unary = [&m](const char* name, Value (*f)(const Value&)) {
    m.def(name, Traced(f), py::arg("x"));
  };
#define HT_UNARY(op, ...) unary(#op, Unary<nn::op>);
#define HT_PREDICATE HT_UNARY
#define HT_LOGICAL_UNARY HT_UNARY
  const auto binary = [&m](const char* name, Value (*f)(const py::object&, const py::object&)) {
    m.def(name, Traced(f), py::arg("a"), py::arg("b"));
  };
#define HT_BINARY(op, ...) binary(#op, Binary<nn::op>);
#define HT_SCALAR_BINARY HT_BINARY
#define HT_COMPARE HT_BINARY
#define HT_COMPARE_SWAPPED HT_BINARY
#define HT_LOGICAL(op, ...)                                                                      \
  m.def(#op, Traced(+[](const Value& a, const Value& b) { return nn::op(a, b); }), py::arg("a"), \
        py::arg("b"));
#include "halftone/graph/ops/support/elementwise.def"
  m.def("where", Traced(+[](const Value& condition, const py::object& a, const py::object& b) {
          return nn::where(condition, ToOperand(a), ToOperand(b));
        }),
        py::arg("condition"), py::arg("a"), py::arg("b"));
  m.def("apply_where",
        Traced(+[](const Value& condition, const Value& x, const py::function& f,
                   const py::object& otherwise, double safe_input) {
          const auto apply = [&f](const Value& v) {
            const py::object y = f(v);
            if (!py::isinstance<Value>(y)) RaiseTypeError("apply_where: f did not return a Value");
            return py::cast<Value>(y);
          };
          return nn::apply_where(condition, x, apply, ToOperand(otherwise), safe_input);
        }),
        py::arg("condition"), py::arg("x"), py::arg("f"), py::arg("otherwise"),
        py::arg("safe_input") = 1.0);
  m.def("masked_fill", Traced(+[](const Value& x, const Value& mask, double value) {
          return nn::masked_fill(x, mask, value);
        }),
        py::arg("x"), py::arg("mask"), py::arg("value"));
  m.def("constant",
        Traced(+[](const py::object& value) { return nn::constant(ToTensor(value, "constant")); }),
        py::arg("value"), "A NumPy array that is part of the graph; read now");
  m.def("cast", Traced(+[](const Value& x, const py::object& dtype) {
          return nn::cast(x, ToDType(dtype));
        }),
        py::arg("x"), py::arg("dtype"));
}

void BindReductions(py::module_& m) {
  const auto reduction = [&m](const char* name, Value (*f)(const Value&, const py::object&, bool)) {
    m.def(name, Traced(f), py::arg("x"), py::arg("axes") = py::none(), py::arg("keepdim") = false);
  };
  reduction("sum", [](const Value& x, const py::object& axes, bool keepdim) {
    return nn::sum(x, ToAxes(axes), keepdim);
  });
  reduction("mean", [](const Value& x, const py::object& axes, bool keepdim) {
    return nn::mean(x, ToAxes(axes), keepdim);
  });
  reduction("max", [](const Value& x, const py::object& axes, bool keepdim) {
    return nn::max(x, ToAxes(axes), keepdim);
  });
  m.def("argmax", Traced(+[](const Value& x, int64_t axis, bool keepdim) {
          return nn::argmax(x, axis, keepdim);
        }),
        py::arg("x"), py::arg("axis"), py::arg("keepdim") = false);
}

void BindShapes(py::module_& m) {
  m.def("reshape", Traced(+[](const Value& x, const Ints& shape) { return nn::reshape(x, shape); }),
        py::arg("x"), py::arg("shape"));
  m.def("flatten", Traced(+[](const Value& x, int64_t first, int64_t last) {
          return nn::flatten(x, first, last);
        }),
        py::arg("x"), py::arg("first") = 1, py::arg("last") = -1);
  m.def("unsqueeze", Traced(+[](const Value& x, int64_t axis) { return nn::unsqueeze(x, axis); }),
        py::arg("x"), py::arg("axis"));
  m.def("squeeze", Traced(+[](const Value& x, int64_t axis) { return nn::squeeze(x, axis); }),
        py::arg("x"), py::arg("axis"));
  m.def("transpose", Traced(+[](const Value& x, int64_t axis0, int64_t axis1) {
          return nn::transpose(x, axis0, axis1);
        }),
        py::arg("x"), py::arg("axis0"), py::arg("axis1"));
  m.def("permute", Traced(+[](const Value& x, const Ints& perm) { return nn::permute(x, perm); }),
        py::arg("x"), py::arg("perm"));
  m.def("slice",
        Traced(+[](const Value& x, int64_t axis, int64_t start, int64_t limit, int64_t step) {
          return nn::slice(x, axis, start, limit, step);
        }),
        py::arg("x"), py::arg("axis"), py::arg("start"), py::arg("limit"), py::arg("step") = 1);
  m.def("concat", Traced(+[](const std::vector<Value>& values, int64_t axis) {
          return nn::concat(values, axis);
        }),
        py::arg("values"), py::arg("axis"));
  m.def("broadcast_to",
        Traced(+[](const Value& x, const Ints& shape) { return nn::broadcast_to(x, shape); }),
        py::arg("x"), py::arg("shape"));
}

}  // namespace

void BindMath(py::module_& m) {
  BindElementwise(m);
  BindReductions(m);
  BindShapes(m);
}

}  // namespace halftone::python
