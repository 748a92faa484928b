// Seconds of a kernel on an accelerator.
#pragma once

#include "halftone/kernels/device_backend.h"
#include "halftone/kernels/kernel.h"

namespace halftone::benchmarks {

// Seconds a call of `kernel`, made of `node`: median over blocks of replays of a recorded graph, each between
// two waits for the device, by the host's clock. Operands are in memory of their own, those of
// OperandValues; a kernel that updates variables works over its inputs, as in a step. A block takes about 5 ms and there are
// `blocks` of them, fewer if that takes longer than 0.2 s; one at least. Errors: those of the device, which mostly stay; ResourceExhausted
// without the memory; Internal if the kernel raises a fault, or no time was measured.
absl::StatusOr<double> SecondsOnDevice(kernels::DeviceBackend& backend, const ir::Node& node,
                                       kernels::Kernel& kernel, int blocks);

}  // namespace halftone::benchmarks
