// An .npy file in parts, for files that hold several.
#pragma once

#include <cstdint>
#include <string>

#include "halftone/core/io/read_next.h"
#include "halftone/core/tensor.h"

namespace halftone::io {

// The tensor of an .npy file of `size` bytes, all of which are read. Errors: those of FromNpyBytes
// and of `read`.
absl::StatusOr<Tensor> ReadNpyFrom(uint64_t size, const ReadNext& read);

// What stands before the elements in ToNpyBytes.
std::string NpyHead(const Tensor& tensor);

}  // namespace halftone::io
