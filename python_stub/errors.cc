#include "halftone/python_stub/errors.h"

namespace halftone::python {
namespace {

PyObject* ExceptionFor(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAlreadyExists:
      return PyExc_ValueError;
    case absl::StatusCode::kOutOfRange:
      return PyExc_IndexError;
    case absl::StatusCode::kNotFound:
      return PyExc_LookupError;
    case absl::StatusCode::kUnimplemented:
      return PyExc_NotImplementedError;
    case absl::StatusCode::kResourceExhausted:
      return PyExc_MemoryError;
    default:
      return PyExc_RuntimeError;
  }
}

[[noreturn]] void RaiseAs(PyObject* type, const std::string& message) {
  PyErr_SetObject(type, Text(message).ptr());
  throw py::error_already_set();
}

}  // namespace

py::str Text(const std::string& text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

std::string TypeName(py::handle object) {
  return py::cast<std::string>(py::type::handle_of(object).attr("__name__"));
}

void Raise(const absl::Status& status) { RaiseAs(ExceptionFor(status.code()), Message(status)); }

void RaiseTypeError(const std::string& message) { RaiseAs(PyExc_TypeError, message); }

void CheckFile(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kNotFound) {
    RaiseAs(PyExc_FileNotFoundError, Message(status));
  }
  Check(status);
}

}  // namespace halftone::python
