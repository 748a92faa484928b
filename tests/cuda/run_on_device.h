// Runs one CUDA kernel on plain host tensors.
#pragma once

#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/kernels/kernel.h"

namespace halftone::testing {

// The type in the plain layout, in which host tensors lie.
ir::ValueType Plain(ir::ValueType type);

// The CUDA candidates of an op; registers the backend's kernels at the first call.
std::vector<const kernels::KernelCandidate*> CudaCandidates(const std::string& op);

// As RunKernel of tests/support, in device memory: twice, over outputs and workspace filled with
// different bytes, each operand in an allocation of its own. Errors: Internal when the kernel
// writes beside an output (within 64 bytes), leaves an element unwritten, changes an input, or the
// device fails; OutOfRange for a run-time index.
absl::StatusOr<std::vector<Tensor>> RunOnDevice(kernels::Kernel& kernel, const ir::Node& node,
                                                const std::vector<Tensor>& inputs);

}  // namespace halftone::testing
