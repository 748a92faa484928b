// Points around centres, a centre a class: data that a small net learns in a few steps.
#pragma once

#include <cstdint>
#include <vector>

#include "halftone/core/tensor.h"

namespace halftone::example {

// Points f32 [count,features] and their classes i64 [count], of a batch that `step` numbers: the same
// for equal arguments.
std::vector<Tensor> Blobs(int64_t step, int64_t count, int64_t features, int64_t classes);

// The same as images [count,1,side,side].
std::vector<Tensor> BlobImages(int64_t step, int64_t count, int64_t side, int64_t classes);

}  // namespace halftone::example
