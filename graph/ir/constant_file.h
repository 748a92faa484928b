// Large constants in files of raw little-endian elements, named by a hash of their bytes.
#pragma once

#include <string>

#include "halftone/core/tensor.h"

namespace halftone::ir {

// "00c0ffee00c0ffee.bin".
std::string ConstantFileName(const Tensor& tensor);

absl::Status WriteConstantFile(const Tensor& tensor, const std::string& dir);

// Errors: InvalidArgument (a name that ConstantFileName would not give: no path leads out of
// `dir`), NotFound, DataLoss (other size or hash).
absl::StatusOr<Tensor> ReadConstantFile(const std::string& dir, const std::string& name,
                                        DType dtype, const Shape& shape);

// Fills a new tensor from untrusted bytes. Errors: DataLoss (wrong size; a bool that is not 0 or
// 1), ResourceExhausted.
absl::StatusOr<Tensor> TensorFromBytes(DType dtype, const Shape& shape, const std::string& bytes);

}  // namespace halftone::ir
