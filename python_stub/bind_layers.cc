// The modules of graph/nn/modules.def, and the layers of graph/ops/support/elementwise.def.
#include <memory>
#include <optional>

#include "halftone/graph/ir/op.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/declared.h"
#include "halftone/python_stub/errors.h"
#include "halftone/python_stub/from_python.h"
#include "halftone/python_stub/tracing.h"

namespace halftone::python {
namespace {

// Assigning ties. What is read is a handle of its own: it stays with its tensor when the layer is
// given another.
template <typename M>
void BindAttribute(py::class_<M, nn::Module>& layer, const Attribute<M>& attribute) {
  layer.def_property(
      attribute.name,
      [member = attribute.member](const M& module) -> std::optional<nn::Parameter> {
        const nn::Parameter& parameter = module.*member;
        return parameter.defined() ? std::optional(OwnHandle(parameter)) : std::nullopt;
      },
      [member = attribute.member](M& module, const nn::Parameter& parameter) {
        module.*member = parameter;
      });
}

// The part itself; it keeps its module alive.
template <typename M, typename Part>
void BindSubmodule(py::class_<M, nn::Module>& layer, const Submodule<M, Part>& submodule) {
  layer.def_property_readonly(
      submodule.name, [member = submodule.member](M& module) -> Part& { return module.*member; },
      py::return_value_policy::reference_internal);
}

// PyTorch's form of a layer with a state: output, state = layer(x) or layer(x, state), where several
// tensors of a state are a tuple.
py::object ForwardWithState(nn::Module& module, const nn::Value& x, const py::object& state) {
  RequireTrace();
  nn::Values in{x};
  if (py::isinstance<py::tuple>(state) || py::isinstance<py::list>(state)) {
    for (const py::handle each : state) in.push_back(py::cast<nn::Value>(each));
  } else if (!state.is_none()) {
    in.push_back(py::cast<nn::Value>(state));
  }
  const nn::Values out = module.forward(in);
  RaiseTraceError();
  py::list after;
  for (size_t i = 1; i < out.size(); ++i) after.append(py::cast(out.vector()[i]));
  return py::make_tuple(out.vector()[0],
                        after.size() == 1 ? py::object(after[0]) : py::object(py::tuple(after)));
}

template <typename M>
void BindActivation(py::module_& m, const char* name, const char* op) {
  py::class_<M, nn::Module>(m, name, py::is_final(), ir::OpRegistry::Global().Find(op)->doc.c_str())
      .def(py::init<>());
}

template <typename M, typename Declared>
void BindModule(py::module_& m, Type<M> type, const Declared& declared) {
  py::class_<M, nn::Module> layer(m, declared.name, py::is_final(),
                                  DocOf(declared.doc, declared.options).c_str());
  // Mistakes of a constructor are raised by it.
  const auto make = [](const auto&... in) {
    auto module = std::make_unique<M>(in...);
    Check(module->status());
    return module;
  };
  WithPythonArguments(
      declared, make, [] {},
      [&layer](const auto& constructor, const auto&... argument) {
        layer.def(py::init(constructor), argument...);
      });
  if constexpr (kTakesState<M>) {
    layer.def("forward", &ForwardWithState, py::arg("x"), py::arg("state") = py::none());
  }
  for (const Attribute<M>& attribute : AttributesOf(type)) BindAttribute(layer, attribute);
  std::apply([&layer](const auto&... part) { (BindSubmodule(layer, part), ...); },
             SubmodulesOf(type));
}

}  // namespace

void BindLayers(py::module_& m) {
#define HT_ACTIVATION(op, Formula, Layer, ...) BindActivation<nn::Layer>(m, #Layer, #op);
#include "halftone/graph/ops/support/elementwise.def"
  ForEachModule([&m](auto type, const auto& declared) { BindModule(m, type, declared); });
}

}  // namespace halftone::python
