// Reader and writer of safetensors, the format in which Hugging Face and PyTorch users keep weights.
// Source: https://github.com/huggingface/safetensors, README, "Format".
//
// Element types: BOOL U8 I32 I64 F16 BF16 F32 F64. A file with another (I8, U16, F8_E4M3, ...) is
// refused; no tensor here can hold it.
#pragma once

#include <map>
#include <string>

#include "halftone/core/tensor.h"

namespace halftone::io {

struct Safetensors {
  std::map<std::string, Tensor> tensors;        // what Graph::load_state_dict takes
  std::map<std::string, std::string> metadata;  // "__metadata__" of the file
};

// Untrusted: nothing is allocated that the file does not hold, whose header may have 100 MB, as in
// the library of the format.
// Errors: InvalidArgument (not such a file, a header that breaks the rules, a name that occurs
// twice, a type or shape that no tensor has, bytes that belong to no tensor or to two), DataLoss
// (truncated, a bool that is neither 0 nor 1), ResourceExhausted.
absl::StatusOr<Safetensors> FromSafetensorsBytes(const std::string& bytes);

// The same of a file, tensor by tensor. Errors begin with the path; also NotFound, InvalidArgument
// (not a regular file) and FailedPrecondition (the system refuses).
absl::StatusOr<Safetensors> ReadSafetensors(const std::string& path);

// Equal contents give equal bytes: in the order in which that library writes them.
// Names that share a tensor get it each. Errors: InvalidArgument (an undefined tensor, text that is
// not UTF-8, a tensor called "__metadata__"), those of WriteFileAtomically.
absl::Status WriteSafetensors(const std::string& path, const Safetensors& contents);

}  // namespace halftone::io
