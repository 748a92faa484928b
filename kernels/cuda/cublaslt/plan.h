// CublasLtPlan: one product of fixed shapes by cuBLASLt, its algorithm chosen.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>

#include "halftone/kernels/cuda/cublaslt/handles.h"
#include "halftone/kernels/cuda/device/matmul_geometry.h"

namespace halftone::cuda {

// Row-major y = A B is the library's column-major y^T = B^T A^T: the operands change places,
// nothing is copied. Sums are f32; f32 operands are multiplied as they are unless the geometry allows
// TF32 (10 bits after the point), to which the matrix units round them. A bias is added before the
// only rounding; it has the output's dtype. Operands of 8 bits are multiplied by numbers in device
// memory, one each.
//
// The algorithm is the fastest of the library's first suggestions, as measured here or by an
// earlier program (AutotuneCache); the first one if HALFTONE_AUTOTUNE is "0".
//
// Not thread-safe: Run sets the addresses of the bias and of those numbers in the descriptor.
class CublasLtPlan {
 public:
  // What all pointers are multiples of, in bytes, the workspace too.
  static constexpr size_t kAlignment = 16;
  static constexpr size_t kWorkspaceLimit = size_t{32} << 20;

  // OK, or Unimplemented with the reason: f64, a bias in another dtype than y, an empty product, a
  // batch that is no strided one, extents beyond 32 bits; in 8 bits, operands that do not both lie
  // along k, extents of k and n that are no multiples of 16, and two operands of f8e5m2.
  static absl::Status Supports(const MatmulGeometry& geometry);
  // For the current device. Measuring allocates device memory and waits. Errors: Unimplemented if
  // the library has no algorithm; Internal, ResourceExhausted: what the library or the device said.
  static absl::StatusOr<CublasLtPlan> Make(const MatmulGeometry& geometry);

  // What AutotuneCache knows the choice by: the library's version, the device, the product.
  static absl::StatusOr<std::string> CacheKey(const MatmulGeometry& geometry);

  size_t workspace_bytes() const { return workspace_bytes_; }
  struct Operands {
    const void *a, *b;
    const void* bias = nullptr;                           // null without one
    const void *a_factor = nullptr, *b_factor = nullptr;  // f32, of 8-bit operands
  };
  // Errors: Internal.
  absl::Status Run(const Operands& operands, void* y, void* workspace, cudaStream_t stream) const;

 private:
  CublasLtPlan() = default;

  absl::Status Describe(const MatmulGeometry& geometry);
  absl::Status Choose(const MatmulGeometry& geometry);
  absl::StatusOr<int> Measure(const MatmulGeometry& geometry,
                              const cublasLtMatmulHeuristicResult_t* candidates, int count) const;
  absl::Status Multiply(const cublasLtMatmulAlgo_t& algorithm, size_t algorithm_workspace_bytes,
                        const Operands& operands, void* y, void* workspace,
                        cudaStream_t stream) const;

  cublasLtHandle_t handle_ = nullptr;
  bool has_bias_ = false, has_factors_ = false;
  LtMatmulDesc matmul_;
  LtMatrixLayout a_, b_, y_;
  cublasLtMatmulAlgo_t algorithm_{};
  size_t algorithm_workspace_bytes_ = 0;
  size_t workspace_bytes_ = 0;
};

}  // namespace halftone::cuda
