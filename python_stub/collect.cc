#include "halftone/python_stub/collect.h"

namespace halftone::python {
namespace {

namespace py = pybind11;

// What keep_alive keeps is in a table of pybind11: its "patients".
int VisitKept(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (reinterpret_cast<const py::detail::instance*>(self)->has_patients) {
    const auto& patients = py::detail::get_internals().patients;
    const auto kept = patients.find(self);
    if (kept == patients.end()) return 0;
    for (PyObject* patient : kept->second) Py_VISIT(patient);
  }
  return 0;
}

// Only what nothing reaches is cleared, so nobody sees a module without its children.
int DropKept(PyObject* self) {
  if (reinterpret_cast<py::detail::instance*>(self)->has_patients) {
    py::detail::clear_patients(self);
  }
  return 0;
}

}  // namespace

py::custom_type_setup Collectable() {
  return py::custom_type_setup([](PyHeapTypeObject* heap_type) {
    PyTypeObject& type = heap_type->ht_type;
    type.tp_flags |= Py_TPFLAGS_HAVE_GC;
    type.tp_traverse = &VisitKept;
    type.tp_clear = &DropKept;
  });
}

}  // namespace halftone::python
