// OpenDevice: whether a device is there, and what it is.
#pragma once

#include <string>

#include "halftone/core/device.h"
#include "halftone/core/status.h"

namespace halftone::kernels {

// Opens a device for this process, which the first graph on it does otherwise. Gives what it is:
// "cpu", "NVIDIA H200, sm_90, cuda:0".
//
// CUDA is a module of its own, libhalftone_cuda.so, so that programs start, and run on the CPU,
// where there is no CUDA. It is looked for at $HALFTONE_CUDA_LIBRARY (a file), beside the program
// and in the folder above, where the archives that it was linked with are installed, then where the
// system finds libraries.
//
// Errors, each one line that begins "device cuda:<index>: ": Unimplemented (the module is not
// there), FailedPrecondition (it cannot be opened, with the loader's reason; no driver or one too
// old; a device older than compute capability 8.0), InvalidArgument (no such device; how many there
// are).
absl::StatusOr<std::string> OpenDevice(const Device& device);

}  // namespace halftone::kernels
