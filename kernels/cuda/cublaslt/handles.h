// cuBLASLt's errors as statuses, and its objects destroyed with their owners.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <memory>

#include "halftone/core/dtype.h"
#include "halftone/core/status.h"

namespace halftone::cuda {

// OK, or the call and the status's name: "cublasLtMatmul: CUBLAS_STATUS_INVALID_VALUE".
// Unimplemented for CUBLAS_STATUS_NOT_SUPPORTED and CUBLAS_STATUS_ARCH_MISMATCH, ResourceExhausted
// for CUBLAS_STATUS_ALLOC_FAILED, Internal otherwise.
absl::Status ToStatus(cublasStatus_t status, const char* call);

// The library's context on the current device: made at the first call, kept until the program ends.
// Thread-safe.
absl::StatusOr<cublasLtHandle_t> CublasLtHandle();

// f16, bf16, f32 or one of 8 bits.
cudaDataType CudaTypeOf(DType dtype);

struct CublasLtDeleter {
  void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
  void operator()(cublasLtMatmulDesc_t matmul) const { cublasLtMatmulDescDestroy(matmul); }
  void operator()(cublasLtMatmulPreference_t p) const { cublasLtMatmulPreferenceDestroy(p); }
};
using LtMatrixLayout = std::unique_ptr<cublasLtMatrixLayoutOpaque_t, CublasLtDeleter>;
using LtMatmulDesc = std::unique_ptr<cublasLtMatmulDescOpaque_t, CublasLtDeleter>;
using LtPreference = std::unique_ptr<cublasLtMatmulPreferenceOpaque_t, CublasLtDeleter>;

// A column-major matrix, `batch_stride` elements from one to the next of the batch.
absl::StatusOr<LtMatrixLayout> MakeLtMatrixLayout(DType dtype, int64_t rows, int64_t columns,
                                                  int32_t batch_count, int64_t batch_stride);
absl::StatusOr<LtMatmulDesc> MakeLtMatmulDesc(cublasComputeType_t compute, bool transpose_a,
                                              bool transpose_b);
// Algorithms that need at most `workspace_bytes`, sum in f32 throughout, and take operands aligned
// to `alignment` bytes.
absl::StatusOr<LtPreference> MakeLtPreference(uint64_t workspace_bytes, uint32_t alignment);

}  // namespace halftone::cuda

// Returns the status of the function around it when a library call fails.
#define HT_CUBLASLT_RETURN_IF_ERROR(call) \
  HT_RETURN_IF_ERROR(::halftone::cuda::ToStatus(call, #call))
