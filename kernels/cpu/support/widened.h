// 16-bit storage, f32 arithmetic, one rounding: any op with an f32 kernel also serves f16 and bf16,
// by widening its low operands into the workspace, running the f32 kernel there, and rounding the
// low results once. The graph says where (attribute `widened`): there the library's own kernels
// refuse.
#pragma once

#include <string>

#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// Registers "cpu:widened:<op>" for f16 and bf16, behind the direct candidates. The f32 kernel is
// the first CPU candidate that is not the reference; without one the candidate refuses.
void AddWidened(KernelRegistry& r, const std::string& op);

}  // namespace halftone::kernels
