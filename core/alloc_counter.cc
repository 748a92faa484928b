#include "halftone/core/alloc_counter.h"

namespace halftone::internal {

constinit thread_local AllocationState allocation_state;

}  // namespace halftone::internal
