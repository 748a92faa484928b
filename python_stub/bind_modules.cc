#include <pybind11/stl.h>

#include <memory>
#include <unordered_set>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/module_scope.h"
#include "halftone/graph/nn/trace.h"
#include "halftone/python_stub/arrays.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/collect.h"
#include "halftone/python_stub/errors.h"
#include "halftone/python_stub/interpreter_lock.h"
#include "halftone/python_stub/load_state.h"
#include "halftone/python_stub/tracing.h"

namespace halftone::python {
namespace {

// A module whose forward() is a Python method. Only Python calls it, so nothing is overridden here.
class UserModule : public nn::Module {
 public:
  explicit UserModule(const std::string& name) : name_(name) {}
  std::string description() const override { return name_ + "()"; }

 private:
  std::string name_;
};

// Registration is for subclasses; the bindings stand in for those written in Python.
struct Registrar : nn::Module {
  using nn::Module::register_buffer;
  using nn::Module::register_module;
  using nn::Module::register_parameter;
  using nn::Module::TakeStatus;
};

// The parent keeps the child alive, whatever becomes of the attribute.
void Register(py::handle self, const std::string& name, py::handle child) {
  RegisterModule(py::cast<nn::Module&>(self), name, child);
  py::detail::keep_alive_impl(self, child);
}

void Register(nn::Module& module, const std::string& name, const nn::Parameter& parameter) {
  if (parameter.storage()->kind() == ir::VariableKind::kParameter) {
    (module.*&Registrar::register_parameter)(name, parameter);
  } else {
    (module.*&Registrar::register_buffer)(name, parameter);
  }
  RaiseTraceError();  // inside build()
  Check((module.*&Registrar::TakeStatus)());
}

// Assigning a module or parameter as an attribute registers it under that name.
void SetModuleAttribute(const py::object& self, const py::str& name, const py::object& value) {
  const bool declared = py::hasattr(py::type::of(self), name);
  if (PyObject_GenericSetAttr(self.ptr(), name.ptr(), value.ptr()) != 0) {
    throw py::error_already_set();
  }
  if (declared) return;
  if (py::isinstance<nn::Module>(value)) {
    Register(self, py::cast<std::string>(name), value);
  } else if (py::isinstance<nn::Parameter>(value)) {
    auto& module = py::cast<nn::Module&>(self);
    const auto own_name = py::cast<std::string>(name);
    const auto parameter = py::cast<nn::Parameter>(value);
    // Assigned anew: a tie, or a new tensor.
    if (Retie(module.named_parameters(), own_name, parameter)) return;
    if (Retie(module.named_buffers(), own_name, parameter)) return;
    Register(module, own_name, OwnHandle(parameter));
  }
}

// The arguments of a call by position, those that set_amp names kept f32. A Parameter is f32 as it is.
py::args AmpArguments(const nn::Module& module, const py::args& args) {
  if (module.amp().fp32_inputs.empty()) return args;
  std::vector<nn::Value> values(args.size());
  for (const int i : module.amp().fp32_inputs) {
    const auto at = static_cast<size_t>(i);
    if (at >= args.size() || py::isinstance<nn::Parameter>(args[at])) continue;
    if (!py::isinstance<nn::Value>(args[at])) {
      RaiseTypeError(Concat(module.description(), ": set_amp names input ", i, ", which is ",
                            TypeName(args[at]), "; expected a value"));
    }
    values[at] = py::cast<nn::Value>(args[at]);
  }
  const nn::Values kept = nn::internal::AmpOperands(module, nn::Values(values), nn::Loc::current());
  RaiseTraceError();
  py::list arguments(args);
  for (const int i : module.amp().fp32_inputs) {
    const auto at = static_cast<size_t>(i);
    if (py::isinstance<nn::Value>(args[at])) arguments[at] = py::cast(kept.vector()[at]);
  }
  return py::args(py::tuple(arguments));
}

// A result, or each of a list or tuple of them, kept f32 where set_amp says so.
py::object AmpResult(const nn::Module& module, const py::object& result) {
  if (!module.amp().fp32_outputs) return result;
  if (py::isinstance<nn::Value>(result)) {
    const nn::Values kept =
        nn::internal::AmpResults(module, {py::cast<nn::Value>(result)}, nn::Loc::current());
    RaiseTraceError();
    return py::cast(kept.vector()[0]);
  }
  if (!py::isinstance<py::list>(result) && !py::isinstance<py::tuple>(result)) return result;
  py::list results;
  for (const py::handle part : result) {
    results.append(AmpResult(module, py::reinterpret_borrow<py::object>(part)));
  }
  return py::isinstance<py::list>(result) ? py::object(results) : py::object(py::tuple(results));
}

py::object Call(const py::object& self, const py::args& args, const py::kwargs& kwargs) {
  RequireTrace();
  const nn::ModuleScope scope(py::cast<nn::Module&>(self), nn::Loc::current());
  RaiseTraceError();  // not part of this graph
  const auto& module = py::cast<nn::Module&>(self);
  py::object result = self.attr("forward")(*AmpArguments(module, args), **kwargs);
  RaiseTraceError();
  return AmpResult(module, result);
}

// forward() of modules of several values: one result, or a list.
template <typename... V>
py::object ForwardOf(nn::Module& module, const V&... in) {
  RequireTrace();
  const nn::Values out = module.forward(nn::Values{in...});
  RaiseTraceError();
  return out.size() == 1 ? py::cast(out.vector()[0]) : py::cast(out.vector());
}

// Changes a module, and gives it. Errors: called inside build().
template <typename Function>
py::object Change(const py::object& self, const Function& change) {
  change(py::cast<nn::Module&>(self));
  RaiseTraceError();
  return self;
}

// `with nn.ModuleScope(module):` in a function of a module.
class Scope {
 public:
  explicit Scope(py::object module) : module_(std::move(module)) {}

  void Enter() {
    RequireTrace();
    nn::internal::Trace* trace = nn::internal::Trace::Current();
    trace->EnterModule(py::cast<nn::Module&>(module_), nn::Loc::current());
    trace_ = trace->number();
    depth_ = trace->depth();
    RaiseTraceError();  // not part of this graph
  }

  // A generator may close it late, even in another build(), where it has nothing to close.
  void Exit(const py::args& /*exception*/) const {
    nn::internal::Trace* trace = nn::internal::Trace::Current();
    if (trace == nullptr || trace->number() != trace_) return;
    if (trace->depth() != depth_) {
      Raise(FailedPrecondition("ModuleScope: closed while another scope is open inside it, or ",
                               "twice; expected the innermost first"));
    }
    trace->Leave();
  }

 private:
  py::object module_;
  uint64_t trace_ = 0;
  size_t depth_ = 0;
};

py::list NamedParameters(const std::vector<std::pair<std::string, nn::Parameter>>& named) {
  py::list list;
  for (const auto& [name, parameter] : named) list.append(py::make_tuple(name, parameter));
  return list;
}

}  // namespace

nn::Parameter OwnHandle(const nn::Parameter& parameter) {
  nn::Parameter own;
  own = parameter;
  return own;
}

bool Retie(const std::vector<std::pair<std::string, nn::Parameter>>& named, const std::string& name,
           const nn::Parameter& parameter) {
  for (const auto& [own, handle] : named) {
    if (own != name) continue;
    nn::Parameter registered = handle;  // the same handle: assigning reaches the list
    registered = parameter;
    return true;
  }
  return false;
}

void RegisterModule(nn::Module& parent, const std::string& name, py::handle child) {
  auto& module = py::cast<nn::Module&>(child);
  (parent.*&Registrar::register_module)(name, module);
  RaiseTraceError();  // inside build()
  Check((parent.*&Registrar::TakeStatus)());
}

std::vector<nn::Parameter> Distinct(
    const std::vector<std::pair<std::string, nn::Parameter>>& named) {
  std::vector<nn::Parameter> list;
  std::unordered_set<const void*> seen;
  for (const auto& [name, parameter] : named) {
    if (seen.insert(parameter.storage().get()).second) list.push_back(parameter);
  }
  return list;
}

void BindModules(py::module_& m) {
  // Subclasses have attributes; py::dynamic_attr would have the collector visit them twice, and
  // circles through them never be freed.
  py::class_<nn::Module>(m, "Module", Collectable(), "A named group of parameters and modules")
      .def(py::init([](const std::string& name) -> std::unique_ptr<nn::Module> {
             return std::make_unique<UserModule>(name);
           }),
           py::arg("name") = "Module")
      .def("__setattr__", &SetModuleAttribute)
      .def("__call__", &Call)
      .def("forward",
           Traced(+[](nn::Module& module, const nn::Value& x) { return module.forward(x); }),
           py::arg("x"))
      .def("forward", &ForwardOf<nn::Value, nn::Value>)
      .def("forward", &ForwardOf<nn::Value, nn::Value, nn::Value>)
      .def("forward", &ForwardOf<nn::Value, nn::Value, nn::Value, nn::Value>)
      .def(
          "add_module",
          [](const py::object& self, const std::string& name, const py::object& module) {
            if (!py::isinstance<nn::Module>(module)) RaiseTypeError("add_module: not a Module");
            Register(self, name, module);
          },
          py::arg("name"), py::arg("module"))
      .def(
          "register_parameter",
          [](nn::Module& module, const std::string& name, const nn::Parameter& parameter) {
            Register(module, name, parameter);
          },
          py::arg("name"), py::arg("parameter"))
      .def("parameters",
           [](const nn::Module& module) { return Distinct(module.named_parameters()); })
      .def("named_parameters",
           [](const nn::Module& module) { return NamedParameters(module.named_parameters()); })
      .def("named_buffers",
           [](const nn::Module& module) { return NamedParameters(module.named_buffers()); })
      .def("state_dict",
           [](const nn::Module& module) {
             return FromStateDict(
                 Unwrap(WithoutInterpreterLock([&] { return module.state_dict(); })));
           })
      .def(
          "load_state_dict",
          [](nn::Module& module, const py::dict& state, bool strict, const py::object& rename,
             bool convert) {
            return LoadState(
                ToStateDict(state), {strict, convert}, rename, "",
                [&module](const runtime::StateDict& renamed, const runtime::LoadOptions& options) {
                  return module.load_state_dict(renamed, options);
                });
          },
          py::arg("state"), py::arg("strict") = true, py::arg("rename") = py::none(),
          py::arg("convert") = false)
      .def(
          "train",
          [](const py::object& self, bool mode) {
            return Change(self, [mode](nn::Module& m) { m.train(mode); });
          },
          py::arg("mode") = true)
      .def("eval",
           [](const py::object& self) { return Change(self, [](nn::Module& m) { m.eval(); }); })
      .def("freeze",
           [](const py::object& self) { return Change(self, [](nn::Module& m) { m.freeze(); }); })
      .def("unfreeze",
           [](const py::object& self) { return Change(self, [](nn::Module& m) { m.unfreeze(); }); })
      .def("keep_fp32",
           [](const py::object& self) { Change(self, [](nn::Module& m) { m.keep_fp32(); }); })
      .def("allow_low",
           [](const py::object& self) { Change(self, [](nn::Module& m) { m.allow_low(); }); })
      .def(
          "set_amp",
          [](const py::object& self, bool fp32, bool low, const std::vector<int>& fp32_inputs,
             bool fp32_outputs) {
            auto& module = py::cast<nn::Module&>(self);
            module.set_amp({fp32, low, fp32_inputs, fp32_outputs});
            RaiseTraceError();  // inside build()
            Check((module.*&Registrar::TakeStatus)());
            return self;
          },
          py::kw_only(), py::arg("fp32") = false, py::arg("low") = false,
          py::arg("fp32_inputs") = std::vector<int>(), py::arg("fp32_outputs") = false)
      .def(
          "recompute",
          [](const py::object& self, bool mode) {
            return Change(self, [mode](nn::Module& m) { m.recompute(mode); });
          },
          py::arg("mode") = true)
      .def_property_readonly("recomputes", &nn::Module::recomputes)
      .def_property_readonly("is_training", &nn::Module::is_training)
      .def_property_readonly("is_frozen", &nn::Module::is_frozen)
      .def("__repr__", &nn::Module::description);

  py::class_<Scope>(m, "ModuleScope", py::is_final())
      .def(py::init([](const py::object& module) {
             if (!py::isinstance<nn::Module>(module)) RaiseTypeError("ModuleScope: not a Module");
             return std::make_unique<Scope>(module);
           }),
           py::arg("module"))
      .def("__enter__", &Scope::Enter)
      .def("__exit__", &Scope::Exit);
}

}  // namespace halftone::python
