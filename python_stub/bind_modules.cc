#include <pybind11/stl.h>

#include <memory>
#include <unordered_set>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/trace.h"
#include "halftone/python_stub/arrays.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/collect.h"
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
};

bool Contains(const nn::Module& module, const nn::Module& sought) {
  if (&module == &sought) return true;
  for (const auto& named : module.children()) {
    if (Contains(*named.second, sought)) return true;
  }
  return false;
}

// The parent keeps the child alive, whatever becomes of the attribute.
void Register(py::handle self, const std::string& name, py::handle child) {
  auto& parent = py::cast<nn::Module&>(self);
  auto& module = py::cast<nn::Module&>(child);
  if (Contains(module, parent)) {
    Raise(InvalidArgument("\"", name, "\": a module cannot contain itself"));
  }
  (parent.*&Registrar::register_module)(name, module);
  Check(parent.status());
  py::detail::keep_alive_impl(self, child);
}

void Register(nn::Module& module, const std::string& name, const nn::Parameter& parameter) {
  if (parameter.storage()->kind() == ir::VariableKind::kParameter) {
    (module.*&Registrar::register_parameter)(name, parameter);
  } else {
    (module.*&Registrar::register_buffer)(name, parameter);
  }
  Check(module.status());
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

py::object Call(const py::object& self, const py::args& args, const py::kwargs& kwargs) {
  RequireTrace();
  const nn::internal::ModuleScope scope(py::cast<nn::Module&>(self), nn::Loc::current());
  RaiseTraceError();  // not part of this graph
  py::object result = self.attr("forward")(*args, **kwargs);
  RaiseTraceError();
  return result;
}

// nn::Sequential owns its modules, which Python cannot give away; this one refers to them.
// keep_alive holds them, so that the collector sees them.
class Sequential : public nn::Module {
 public:
  explicit Sequential(const py::args& modules) {
    for (py::handle module : modules) {
      if (!py::isinstance<nn::Module>(module)) {
        RaiseTypeError(Concat("Sequential: got ", py::cast<std::string>(py::repr(module)),
                              ", expected modules"));
      }
      register_module(std::to_string(modules_.size()), py::cast<nn::Module&>(module));
      modules_.push_back(module);
    }
  }
  py::object Forward(py::object x) const {
    for (py::handle module : modules_) x = module(x);
    return x;
  }
  std::string description() const override { return Concat("Sequential(", modules_.size(), ")"); }
  const std::vector<py::handle>& modules() const { return modules_; }

 private:
  std::vector<py::handle> modules_;
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
           [](const nn::Module& module) { return FromStateDict(Unwrap(module.state_dict())); })
      .def(
          "load_state_dict",
          [](nn::Module& module, const py::dict& state, bool strict, const py::object& rename) {
            return LoadState(ToStateDict(state), strict, rename, "",
                             [&module](const runtime::StateDict& renamed, bool whole) {
                               return module.load_state_dict(renamed, whole);
                             });
          },
          py::arg("state"), py::arg("strict") = true, py::arg("rename") = py::none())
      .def("keep_fp32", &nn::Module::keep_fp32)
      .def("allow_low", &nn::Module::allow_low)
      .def("__repr__", &nn::Module::description);

  py::class_<Sequential, nn::Module>(m, "Sequential", py::is_final())
      .def(py::init([](const py::args& modules) {
             auto sequential = std::make_unique<Sequential>(modules);
             Check(sequential->status());
             return sequential;
           }),
           py::keep_alive<1, 2>())
      .def("forward", &Sequential::Forward, py::arg("x"))
      .def("__len__", [](const Sequential& s) { return s.modules().size(); })
      .def("__getitem__", [](const Sequential& s, int64_t i) {
        const auto size = static_cast<int64_t>(s.modules().size());
        const int64_t at = i < 0 ? i + size : i;
        if (at < 0 || at >= size) {
          Raise(OutOfRange("Sequential[", i, "]: there are ", size, " modules"));
        }
        return s.modules()[static_cast<size_t>(at)];
      });
}

}  // namespace halftone::python
