#include "halftone/core/alloc_counter.h"

namespace halftone::internal {

AllocationState& OwnAllocationState() {
  constinit static thread_local AllocationState state;
  return state;
}

constinit AllocationStateFunction allocation_state = &OwnAllocationState;

}  // namespace halftone::internal
