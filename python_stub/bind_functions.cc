// The functions of nn: those of graph/ops/support/elementwise.def and of graph/nn/functions.def.
#include "halftone/graph/ir/op.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/declared.h"
#include "halftone/python_stub/from_python.h"
#include "halftone/python_stub/tracing.h"

namespace halftone::python {
namespace {

using nn::Value;

template <Value (*kFunction)(nn::Located, nn::Located)>
Value Binary(const py::object& a, const py::object& b) {
  return kFunction(ToOperand(a), ToOperand(b));
}

template <Value (*kFunction)(const Value&, nn::Loc)>
Value Unary(const Value& x) {
  return kFunction(x, nn::Loc::current());
}

template <Value (*kFunction)(const Value&, const Value&, nn::Loc)>
Value Logical(const Value& a, const Value& b) {
  return kFunction(a, b, nn::Loc::current());
}

void BindElementwise(py::module_& m) {
  const auto define = [&m](const char* op, auto* f, const auto&... argument) {
    m.def(op, Traced(f), argument..., ir::OpRegistry::Global().Find(op)->doc.c_str());
  };
#define HT_UNARY(op, ...) define(#op, Unary<nn::op>, py::arg("x"));
#define HT_TUNABLE(...)
#define HT_PREDICATE HT_UNARY
#define HT_LOGICAL_UNARY HT_UNARY
#define HT_BINARY(op, ...) define(#op, Binary<nn::op>, py::arg("a"), py::arg("b"));
#define HT_SCALAR_BINARY HT_BINARY
#define HT_COMPARE HT_BINARY
#define HT_COMPARE_SWAPPED HT_BINARY
#define HT_LOGICAL(op, ...) define(#op, Logical<nn::op>, py::arg("a"), py::arg("b"));
#include "halftone/graph/ops/support/elementwise.def"
}

// A result as Python has it.
const Value& ToPython(const Value& result) { return result; }
const std::vector<Value>& ToPython(const nn::Values& result) { return result.vector(); }

}  // namespace

void BindFunctions(py::module_& m) {
  BindElementwise(m);
  ForEachFunction([&m](auto /*result*/, const auto& call, const auto& declared) {
    const auto checked = [call](const auto&... in) {
      const auto result = call(in...);
      RaiseTraceError();
      return ToPython(result);
    };
    WithPythonArguments(declared, checked, &RequireTrace,
                        [&](const auto& function, const auto&... argument) {
                          m.def(declared.name, function, argument...,
                                DocOf(declared.doc, declared.options).c_str());
                        });
  });
}

}  // namespace halftone::python
