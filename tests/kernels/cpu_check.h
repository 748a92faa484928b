// The check of CPU kernels: against the reference kernel, at every SIMD level.
#pragma once

#include <string>
#include <vector>

#include "halftone/kernels/kernel.h"
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {

// The candidates of the CPU proper, in order.
std::vector<const kernels::KernelCandidate*> FastCandidates(const std::string& op);

// Whether `kernel`, made for `node`, gives what the reference kernel gives.
::testing::AssertionResult Agrees(kernels::Kernel& kernel, const ir::Node& node,
                                  const std::vector<Tensor>& inputs, const Slack& slack = {});

// Expects it of every candidate that supports the case, at every level.
void CheckCandidates(const OpCase& c, DType dtype, ir::Layout layout = ir::Layout::kPlain);
// In the case's dtypes and layouts.
void CheckCandidates(const OpCase& c);

}  // namespace halftone::testing
