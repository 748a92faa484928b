#include "halftone/kernels/cuda/cublaslt/handles.h"

#include <cuda_runtime_api.h>

#include <map>
#include <mutex>
#include <string>
#include <string_view>

#include "halftone/core/check.h"
#include "halftone/kernels/cuda/runtime/status.h"

namespace halftone::cuda {
namespace {

template <typename T>
absl::Status Set(const LtMatmulDesc& matmul, cublasLtMatmulDescAttributes_t attribute, T value) {
  HT_CUBLASLT_RETURN_IF_ERROR(
      cublasLtMatmulDescSetAttribute(matmul.get(), attribute, &value, sizeof(value)));
  return absl::OkStatus();
}

template <typename T>
absl::Status Set(const LtMatrixLayout& layout, cublasLtMatrixLayoutAttribute_t attribute, T value) {
  HT_CUBLASLT_RETURN_IF_ERROR(
      cublasLtMatrixLayoutSetAttribute(layout.get(), attribute, &value, sizeof(value)));
  return absl::OkStatus();
}

template <typename T>
absl::Status Set(const LtPreference& preference, cublasLtMatmulPreferenceAttributes_t attribute,
                 T value) {
  HT_CUBLASLT_RETURN_IF_ERROR(
      cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof(value)));
  return absl::OkStatus();
}

int32_t Operation(bool transpose) { return transpose ? CUBLAS_OP_T : CUBLAS_OP_N; }

}  // namespace

absl::Status ToStatus(cublasStatus_t status, const char* call) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  // Of a whole call, its name.
  const std::string_view text(call);
  const std::string message =
      Concat(text.substr(0, text.find('(')), ": ", cublasLtGetStatusName(status));
  switch (status) {
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return Unimplemented(message);
    case CUBLAS_STATUS_ALLOC_FAILED:
      return ResourceExhausted(message);
    default:
      return Internal(message);
  }
}

absl::StatusOr<cublasLtHandle_t> CublasLtHandle() {
  struct Handles {
    std::mutex mutex;
    std::map<int, cublasLtHandle_t> of_device;
  };
  // Never destroyed: at the end of the program the driver may be gone before.
  static auto* handles = new Handles;
  int device = 0;
  HT_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  const std::lock_guard<std::mutex> lock(handles->mutex);
  const auto it = handles->of_device.find(device);
  if (it != handles->of_device.end()) return it->second;
  cublasLtHandle_t handle = nullptr;
  HT_CUBLASLT_RETURN_IF_ERROR(cublasLtCreate(&handle));
  handles->of_device[device] = handle;
  return handle;
}

cudaDataType CudaTypeOf(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return CUDA_R_16F;
    case DType::kBF16:
      return CUDA_R_16BF;
    case DType::kF8E4M3:
      return CUDA_R_8F_E4M3;
    case DType::kF8E5M2:
      return CUDA_R_8F_E5M2;
    default:
      HT_CHECK(dtype == DType::kF32, "a dtype that is not for the library");
      return CUDA_R_32F;
  }
}

absl::StatusOr<LtMatrixLayout> MakeLtMatrixLayout(DType dtype, int64_t rows, int64_t columns,
                                                  int32_t batch_count, int64_t batch_stride) {
  cublasLtMatrixLayout_t created = nullptr;
  HT_CUBLASLT_RETURN_IF_ERROR(
      cublasLtMatrixLayoutCreate(&created, CudaTypeOf(dtype), rows, columns, rows));
  LtMatrixLayout layout(created);
  if (batch_count > 1) {
    HT_RETURN_IF_ERROR(Set(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, batch_count));
    HT_RETURN_IF_ERROR(Set(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, batch_stride));
  }
  return layout;
}

absl::StatusOr<LtMatmulDesc> MakeLtMatmulDesc(cublasComputeType_t compute, bool transpose_a,
                                              bool transpose_b) {
  cublasLtMatmulDesc_t created = nullptr;
  HT_CUBLASLT_RETURN_IF_ERROR(cublasLtMatmulDescCreate(&created, compute, CUDA_R_32F));
  LtMatmulDesc matmul(created);
  HT_RETURN_IF_ERROR(Set(matmul, CUBLASLT_MATMUL_DESC_TRANSA, Operation(transpose_a)));
  HT_RETURN_IF_ERROR(Set(matmul, CUBLASLT_MATMUL_DESC_TRANSB, Operation(transpose_b)));
  return matmul;
}

absl::StatusOr<LtPreference> MakeLtPreference(uint64_t workspace_bytes, uint32_t alignment) {
  cublasLtMatmulPreference_t created = nullptr;
  HT_CUBLASLT_RETURN_IF_ERROR(cublasLtMatmulPreferenceCreate(&created));
  LtPreference preference(created);
  HT_RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes));
  // The other schemes add parts of a sum in the output's dtype.
  HT_RETURN_IF_ERROR(Set(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                         uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE}));
  for (const auto attribute :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES}) {
    HT_RETURN_IF_ERROR(Set(preference, attribute, alignment));
  }
  return preference;
}

}  // namespace halftone::cuda
