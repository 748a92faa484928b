// What a Python call does around the functions of nn while build() runs.
//
// No exception passes through Halftone's own frames: where the library calls Python, an exception
// is kept, the trace fails, and the next binding that returns to Python raises what was kept.
#pragma once

#include <utility>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/nn/value.h"
#include "halftone/python_stub/errors.h"

namespace halftone::python {

// File (base name) and line of the Python code that runs.
ir::SourceLocation PythonLocation();

// Raises RuntimeError outside build(), where values mean nothing.
void RequireTrace();
// Raises the first error of the current trace, so that the traceback shows the line at fault.
void RaiseTraceError();

// Call in a catch block: keeps the exception and fails the trace.
void KeepException();
// Raises what was kept, if anything.
void RaiseKept();

// `f` as a binding: checked before and after.
template <typename R, typename... Args>
auto Traced(R (*f)(Args...)) {
  return [f](Args... args) -> R {
    RequireTrace();
    R result = f(std::forward<Args>(args)...);
    RaiseTraceError();
    return result;
  };
}

}  // namespace halftone::python
