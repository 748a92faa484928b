// What every op of the tree must have. tests/kernels holds all ops to it, tests/cuda those kernels
// that need its device; tests/kernels also plants what they are to find.
#pragma once

#include <string>
#include <vector>

#include "halftone/kernels/kernel.h"
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {

// Whether something must compute the op: markers are gone before a run, and input, variable,
// constant and commit are what it is given and keeps.
bool IsComputed(const ir::OpRecord& op);

// Whether a node may have `dtype` as its main one: that of its first operand of floats.
bool MayBeOf(const ir::OpRecord& op, DType dtype);

// What `op` lacks, a line each; "": nothing. It must say what it is and from where, and why it has
// its AMP class. `cases` must have one of the op, and one that checks its gradient, or that of its
// decomposition, unless its record says why there is none.
std::string LackedBy(const ir::OpRecord& op, const std::vector<OpCase>& cases);

// The same of kernels on `device`. The reference must have one, the oracle of all others; another
// device kernels of its own in each of f32, f16 and bf16 that the op takes, or the op a
// decomposition. What is not computed must have none.
std::string KernelsLackedBy(const ir::OpRecord& op, Device::Kind device,
                            const kernels::KernelRegistry& registry);

}  // namespace halftone::testing
