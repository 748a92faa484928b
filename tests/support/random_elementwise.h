// What graphs give with the pass `fuse` and without it.
#pragma once

#include <cstdint>
#include <string>

#include "halftone/core/device.h"

namespace halftone::testing {

// Random graphs of elementwise ops in f32, f16 and bf16, of seeds first, first + 1, ...: values of one shape
// that is large enough for `fuse`, their rows and single numbers; a reduction now and then, and values
// that are read twice or returned. Empty if each gives the same bits fused and unfused, and there was more
// than a fused node a graph on average; else the first difference.
std::string CompareFusion(const Device& device, uint64_t first, int count);

// The same of batch norms, a residual and an activation: of images, which may be channels-last, and of
// features. Each is one fused node.
std::string CompareFusedBatchNorms(const Device& device);

}  // namespace halftone::testing
