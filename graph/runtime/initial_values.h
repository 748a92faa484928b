// The first values of variables.
#pragma once

#include "halftone/core/tensor.h"
#include "halftone/graph/ir/graph.h"

namespace halftone::runtime {

// A new tensor filled as `init` says. Random numbers come from Philox stream (seed, stream):
// element i is a function of word i alone (normal: of the words i - i % 2 and the next), so the
// threads share the work and any number of them gives the same bits. Zeros are pages that the
// system gives when a step first touches them. Errors: ResourceExhausted.
absl::StatusOr<Tensor> MakeInitialValue(const ir::Initializer& init, uint64_t seed, uint64_t stream,
                                        DType dtype, const Shape& shape);

}  // namespace halftone::runtime
