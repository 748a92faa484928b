// Large constants in files of raw little-endian elements, named by a hash of their bytes.
#pragma once

#include <string>

#include "halftone/core/tensor.h"

namespace halftone::ir {

// How each constant of one text is written. Asked for in the order of the nodes: the bytes that
// splat constants expand to are bounded per text, and the parser keeps the same sum.
class ConstantForms {
 public:
  enum class Form : uint8_t { kDense, kSplat, kFile };
  explicit ConstantForms(bool files) : files_(files) {}
  Form Next(const Tensor& tensor);

 private:
  bool files_;
  int64_t splat_bytes_ = 0;
};

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
