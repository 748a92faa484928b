// One op on the device against the reference kernel, for tests beyond the case tables.
#pragma once

#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {

// Runs the native CUDA kernel of the case in each of its dtypes (and channels-last where the case
// says so) and compares with the reference within the tolerance of the op's class. On the emulated
// device also in reverse order of threads and blocks, which must give the same bits.
void CheckOnDevice(const OpCase& c);
// The same for given inputs.
void CheckOnDevice(const OpCase& c, DType dtype, const std::vector<Tensor>& inputs,
                   ir::Layout layout);

// The outputs for given inputs, in plain layout; fails the test and returns none on an error.
std::vector<Tensor> RunCaseOnDevice(const OpCase& c, DType dtype, const std::vector<Tensor>& inputs,
                                    ir::Layout layout = ir::Layout::kPlain);
// The error of a run; OK if there is none.
absl::Status ErrorOnDevice(const OpCase& c, DType dtype, const std::vector<Tensor>& inputs);

}  // namespace halftone::testing
