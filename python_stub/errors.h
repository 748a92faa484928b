// From absl::Status to Python exceptions.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "halftone/core/status.h"

namespace halftone::python {

namespace py = pybind11;

// Raises the exception for an error: ValueError (InvalidArgument, AlreadyExists), IndexError
// (OutOfRange), LookupError (NotFound), NotImplementedError (Unimplemented), MemoryError
// (ResourceExhausted), RuntimeError (the rest). Its text is the status's message.
[[noreturn]] void Raise(const absl::Status& status);
// "list": for messages.
std::string TypeName(py::handle object);
[[noreturn]] void RaiseTypeError(const std::string& message);

inline void Check(const absl::Status& status) {
  if (!status.ok()) Raise(status);
}
// The same where NotFound is about a file: FileNotFoundError.
void CheckFile(const absl::Status& status);

template <typename T>
T Unwrap(absl::StatusOr<T> value) {
  Check(value.status());
  return *std::move(value);
}

// A str; bytes that are not UTF-8 (names come from files) become U+FFFD.
py::str Text(const std::string& text);

}  // namespace halftone::python
