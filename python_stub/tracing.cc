#include "halftone/python_stub/tracing.h"

#include <exception>

#include "halftone/graph/nn/op.h"
#include "halftone/graph/nn/trace.h"

namespace halftone::python {
namespace {

thread_local std::exception_ptr kept;

}  // namespace

ir::SourceLocation PythonLocation() {
  PyFrameObject* frame = PyEval_GetFrame();
  if (frame == nullptr) return {};
  const auto code =
      py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
  auto file = py::cast<std::string>(py::str(code.attr("co_filename")));
  const size_t slash = file.find_last_of('/');
  if (slash != std::string::npos) file.erase(0, slash + 1);
  return {file, PyFrame_GetLineNumber(frame)};
}

void RequireTrace() {
  if (nn::internal::Trace::Current() == nullptr) {
    Raise(FailedPrecondition(
        "functions and modules of nn work inside build() only, on the values that it is given"));
  }
}

void RaiseTraceError() {
  RaiseKept();
  nn::internal::Trace* trace = nn::internal::Trace::Current();
  if (trace != nullptr) Check(trace->builder().status());
}

void KeepException() {
  kept = std::current_exception();
  nn::Fail(nn::Loc::current(), Internal("build() raised an exception"));
}

void RaiseKept() {
  if (kept != nullptr) std::rethrow_exception(std::exchange(kept, nullptr));
}

}  // namespace halftone::python
