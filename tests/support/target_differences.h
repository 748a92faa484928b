// Whether a description of a device agrees with the kernels that are registered for it.
#pragma once

#include <string>
#include <vector>

#include "halftone/core/device.h"
#include "halftone/graph/ir/target.h"

namespace halftone::testing {

// A line for each difference between `target` and KernelRegistry::Global(): for every op, whether
// it runs on `device` at all, and whether a kernel, reference apart, serves it in f32, f16 and
// bf16, where its record allows that dtype; for updates, whether a kernel does several. Empty: they
// agree. Sources, markers and commits have no
// kernels anywhere and are left out.
std::vector<std::string> TargetDifferences(const ir::Target& target, Device::Kind device);

}  // namespace halftone::testing
