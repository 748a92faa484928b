// Reader of IDX files (the MNIST format), plain or gzip-compressed. Source:
// http://yann.lecun.com/exdb/mnist, "the IDX file format".
#pragma once

#include <string>

#include "halftone/core/tensor.h"

namespace halftone::io {

// Reads an IDX file into a tensor: 0x08 u8, 0x0C i32, 0x0D f32, 0x0E f64; other types are refused.
// The file is untrusted: sizes are checked against `max_bytes` and against what the file holds,
// before memory grows.
// Errors, each beginning with the path: NotFound (no such file), FailedPrecondition (cannot be
// opened), DataLoss (truncated, trailing bytes, damaged gzip), InvalidArgument (not an IDX file,
// too large).
absl::StatusOr<Tensor> ReadIdx(const std::string& path, int64_t max_bytes = int64_t{1} << 32);

}  // namespace halftone::io
