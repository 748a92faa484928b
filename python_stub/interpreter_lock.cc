#include "halftone/python_stub/interpreter_lock.h"

#include <cxxabi.h>
#include <unistd.h>

namespace halftone::python {
namespace {

// The handler is never left: that would end the process.
template <typename F>
auto OrStop(const F& take) {
  try {
    return take();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
}

}  // namespace

void TakeInterpreterLock(PyThreadState* state) {
  OrStop([state] { PyEval_RestoreThread(state); });
}

PyGILState_STATE TakeInterpreterLock() {
  return OrStop([] { return PyGILState_Ensure(); });
}

}  // namespace halftone::python
