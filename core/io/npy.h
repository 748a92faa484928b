// Reader and writer of NumPy's .npy format. Source:
// https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html
//
// Element types: <f8 <f4 <f2 <i8 <i4 |u1 |b1, and <V2 for bf16, which NumPy lacks: two raw bytes an
// element, as the bfloat16 of the Python package ml_dtypes is saved. In Python such a file reads
// back with `numpy.load(file).view(ml_dtypes.bfloat16)`, or without the package with
// `(numpy.load(file).view('<u2').astype('<u4') << 16).view('<f4')`. Likewise <V1 for f8e4m3 and <f1
// for f8e5m2, as that package's float8_e4m3fn and float8_e5m2 are saved.
#pragma once

#include <cstdint>
#include <string>

#include "halftone/core/tensor.h"

namespace halftone::io {

// The tensor in a file of version 1, 2 or 3, in C order or in Fortran order (whose elements are put
// into C order). Untrusted: nothing is allocated that the bytes do not hold.
// Errors: InvalidArgument (not an npy file, a header that breaks the rules, a type or shape that no
// tensor has), DataLoss (truncated, bytes left over, a bool that is neither 0 nor 1),
// ResourceExhausted.
absl::StatusOr<Tensor> FromNpyBytes(const std::string& bytes);
// Version 1, C order; the elements begin at a multiple of 64.
std::string ToNpyBytes(const Tensor& tensor);

// The same in a file. Errors begin with the path; also those of ReadFile and WriteFileAtomically.
absl::StatusOr<Tensor> ReadNpy(const std::string& path, int64_t max_bytes = int64_t{1} << 32);
absl::Status WriteNpy(const std::string& path, const Tensor& tensor);

}  // namespace halftone::io
