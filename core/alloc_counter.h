// Counts heap allocations of the calling thread, for tests that a training step makes none.
//
// The library does not replace operator new. A program that wants counts links a replacement that
// calls NoteAllocation (tests/support/allocation_hook.cc does); without one only Buffers are
// counted.
#pragma once

#include <cstdint>

namespace halftone {
namespace internal {

struct AllocationState {
  int64_t counted = 0;
  int64_t paused = 0;
  int pause_depth = 0;
};
// Of the calling thread. A pointer, because a module that was loaded has a copy of this code of its
// own: it is given the function of its program. Constant-initialised: operator new may come here
// before main.
AllocationState& OwnAllocationState();
using AllocationStateFunction = AllocationState& (*)();
extern constinit AllocationStateFunction allocation_state;

}  // namespace internal

// Records one allocation of this thread. Never allocates.
inline void NoteAllocation() {
  internal::AllocationState& state = internal::allocation_state();
  ++(state.pause_depth == 0 ? state.counted : state.paused);
}

// Allocations by the calling thread since construction. Use from one thread.
class AllocationCounter {
 public:
  AllocationCounter() : start_(internal::allocation_state()) {}
  int64_t count() const { return internal::allocation_state().counted - start_.counted; }
  // Those made under an AllocationPause: inside libraries.
  int64_t paused_count() const { return internal::allocation_state().paused - start_.paused; }

 private:
  internal::AllocationState start_;
};

// While one lives on a thread, its allocations count as the library's. Two additions; may nest.
class AllocationPause {
 public:
  AllocationPause() { ++internal::allocation_state().pause_depth; }
  ~AllocationPause() { --internal::allocation_state().pause_depth; }
  AllocationPause(const AllocationPause&) = delete;
  AllocationPause& operator=(const AllocationPause&) = delete;
};

}  // namespace halftone
