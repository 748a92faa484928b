// DeviceRunState: what kernels on an accelerator read and write of the run's state. Device code
// includes it, so it includes nothing.
#pragma once

#include <cstdint>

namespace halftone::kernels {

// Lies in device memory, so that a captured step finds the new values of each replay.
struct DeviceRunState {
  uint64_t run_count = 0;  // counter of random ops
  // The first fault of the step, in the order of its nodes: which node (KernelArgs::fault_id; 0:
  // none), and a Fault.
  int64_t fault_id = 0;
  int64_t fault_value = 0;
  int64_t fault_bound = 0;
  int64_t fault_position = 0;
  // Whose it is, of a step that several processes make together: the rank's number and one, once all
  // have heard of it; 0: this one's, or none.
  int64_t fault_rank = 0;
};

}  // namespace halftone::kernels
