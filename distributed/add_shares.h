// Sums of what the ranks have sent.
#pragma once

#include <cstdint>

#include "halftone/core/dtype.h"

namespace halftone::distributed {

// Adds `count` elements of each of `ranks` shares, in the order of the ranks, in f32 (f64 for f64),
// and rounds each sum once; the sums lie at `to`, which may be one of the shares. `mean`: divides them
// by the number of ranks. So a sum does not depend on where in a buffer it is made, nor by whom.
void AddShares(const char* const* shares, int ranks, DType dtype, int64_t count, bool mean,
               char* to);

// A word of a failure in an element of a buffer, and whether one is there after shares were added.
void PutWord(bool failed, char* element, DType dtype);
bool HasWord(const char* element, DType dtype);

}  // namespace halftone::distributed
