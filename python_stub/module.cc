// The extension module halftone._halftone; python_stub/halftone/ arranges its names.
#include "halftone/graph/nn/module.h"

#include "halftone/core/threads.h"
#include "halftone/core/version.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/errors.h"
#include "halftone/python_stub/python_graph.h"

namespace halftone::python {
namespace {

// Of a class, without its module.
std::string ShortName(const PyTypeObject* type) {
  const std::string name = type->tp_name;
  return name.substr(name.rfind('.') + 1);
}

PyTypeObject* BaseType() {
  return reinterpret_cast<PyTypeObject*>(py::detail::get_internals().instance_base);
}

PyObject* NewAsBase(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  return BaseType()->tp_new(type, args, kwargs);
}

// Seals the classes of `scope`. Python refuses X.__new__(X) where X has a __new__ of its own:
// objects made that way, without __init__, would have no C++ object. And it refuses to give an
// object an immutable class: the C++ object would be one of the class before.
void Seal(const py::module_& scope) {
  for (const auto& [name, member] : py::reinterpret_borrow<py::dict>(scope.attr("__dict__"))) {
    if (!PyType_Check(member.ptr())) continue;
    auto* type = reinterpret_cast<PyTypeObject*>(member.ptr());
    type->tp_new = &NewAsBase;
    type->tp_flags |= Py_TPFLAGS_IMMUTABLETYPE;
    PyType_Modified(type);
  }
}

// Makes the C++ object in __new__: a method called before super().__init__(), or without, then
// finds it. pybind11 makes it in __init__, reads uninitialised memory until then, and ignores a
// second
// __init__.
template <typename T>
PyObject* New(PyTypeObject* type, PyObject* /*args*/, PyObject* /*kwargs*/) {
  try {
    const auto self = py::reinterpret_steal<py::object>(NewAsBase(type, nullptr, nullptr));
    if (!self) throw py::error_already_set();
    py::type::of<T>().attr("__init__")(self, ShortName(type));
    return py::object(self).release().ptr();
  } catch (py::error_already_set& error) {
    error.restore();
    return nullptr;
  }
}

// Call after the classes derived from T in C++ are bound: they would inherit it.
template <typename T>
void ConstructInNew() {
  auto* type = reinterpret_cast<PyTypeObject*>(py::type::of<T>().ptr());
  type->tp_new = &New<T>;
  PyType_Modified(type);
}

}  // namespace

Device ToDevice(const std::string& name) { return Unwrap(ParseDevice(name)); }

namespace {

void Bind(py::module_& m) {
  m.attr("__version__") = Version();
  m.def(
      "set_num_threads",
      [](int count) {
        Check(Annotate(CheckNumThreads(count), "set_num_threads: "));
        SetNumThreads(count);
      },
      py::arg("count"));
  m.def("num_threads", &NumThreads);
  py::module_ nn = m.def_submodule("nn");
  py::module_ optim = m.def_submodule("optim");
  py::module_ amp = m.def_submodule("amp");
  py::module_ distributed = m.def_submodule("distributed");
  BindValues(nn);
  BindFunctions(nn);
  BindModules(nn);
  BindContainers(nn);
  BindLayers(nn);
  BindOptimizers(optim);
  BindAmp(amp);
  BindHandles(nn);
  BindConfig(nn);
  BindGraphFile(m);
  BindGraph(nn);
  BindRunLog(nn);
  BindDistributed(distributed);
  for (const py::module_& scope : {m, nn, optim, amp, distributed}) Seal(scope);
  ConstructInNew<nn::Module>();
  ConstructInNew<PythonGraph>();
}

}  // namespace
}  // namespace halftone::python

PYBIND11_MODULE(_halftone, m) { halftone::python::Bind(m); }
