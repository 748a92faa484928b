// Giving the interpreter lock up while the library works, and taking it back.
//
// Whoever waits for another thread (a graph's lock, a device, threads of kernels) does so without
// the interpreter lock: the other thread may be in build(), which needs it.
//
// When the interpreter ends it ends threads that come back for the lock, by unwinding their stack
// with neither lock nor exception. A stack of ours holds references that may not be dropped then,
// and destructors that may not be unwound through; such a thread stops where it is instead.
#pragma once

#include <Python.h>

#include <type_traits>

namespace halftone::python {

// PyEval_RestoreThread and PyGILState_Ensure, which do not return once the interpreter ends.
void TakeInterpreterLock(PyThreadState* state);
PyGILState_STATE TakeInterpreterLock();

// f() without the interpreter lock. `f` may not touch Python objects; build() takes the lock back.
template <typename F>
auto WithoutInterpreterLock(const F& f) {
  PyThreadState* const state = PyEval_SaveThread();
  try {
    if constexpr (std::is_void_v<decltype(f())>) {
      f();
      TakeInterpreterLock(state);
    } else {
      auto result = f();
      TakeInterpreterLock(state);
      return result;
    }
  } catch (...) {
    TakeInterpreterLock(state);
    throw;
  }
}

// Has the interpreter lock while it lives, on a thread that gave it up.
class InterpreterLock {
 public:
  InterpreterLock() : state_(TakeInterpreterLock()) {}
  ~InterpreterLock() { PyGILState_Release(state_); }
  InterpreterLock(const InterpreterLock&) = delete;
  InterpreterLock& operator=(const InterpreterLock&) = delete;

 private:
  PyGILState_STATE state_;
};

}  // namespace halftone::python
