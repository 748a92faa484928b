// Replaced operator new that feeds halftone::AllocationCounter.
#pragma once

namespace halftone::testing {

// Whether this program counts its heap allocations. False under sanitizers, which keep operator new
// for themselves; a test of counts then skips. Also what makes the linker take the hook.
bool AllocationHookInstalled();

}  // namespace halftone::testing
