// Reader and writer of NumPy's .npz format, a ZIP file of .npy files: what numpy.savez and
// savez_compressed write. Source:
// https://numpy.org/doc/stable/reference/generated/numpy.savez.html
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "halftone/core/tensor.h"

namespace halftone::io {

// Arrays by name, which is what Graph::load_state_dict takes: "fc1.weight" is the member
// "fc1.weight.npy". Element types are those of npy.h.
using Npz = std::map<std::string, Tensor>;

// Untrusted: nothing is allocated that the bytes cannot give, and compressed arrays may have
// `max_inflated_bytes` together.
// Errors: InvalidArgument (no ZIP file, a member that is no .npy file, is encrypted, compressed by
// anything but deflate, or claims more than its bytes can give; an array that no tensor has),
// DataLoss (truncated or damaged), ResourceExhausted.
absl::StatusOr<Npz> FromNpzBytes(const std::string& bytes,
                                 int64_t max_inflated_bytes = int64_t{1} << 32);
// The same of a file, array by array. Errors begin with the path; also NotFound, InvalidArgument
// (not a regular file) and FailedPrecondition (the system refuses).
absl::StatusOr<Npz> ReadNpz(const std::string& path, int64_t max_inflated_bytes = int64_t{1} << 32);

// Uncompressed, as numpy.savez; equal contents give equal bytes. Errors: InvalidArgument (an
// undefined tensor, a name of over 65,531 bytes or with a NUL byte), those of WriteFileAtomically.
absl::Status WriteNpz(const std::string& path, const Npz& contents);

}  // namespace halftone::io
