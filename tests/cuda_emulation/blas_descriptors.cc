// Handles and descriptors of the emulated cuBLASLt.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>

#include "halftone/core/strings.h"
#include "halftone/tests/cuda_emulation/blas_types.h"
#include "halftone/tests/cuda_emulation/library_work.h"

namespace halftone::emulation::blas {
namespace {

template <typename Object, typename Handle>
Object* Checked(Handle handle, Kind kind) {
  if (handle == nullptr) return nullptr;
  auto* object = reinterpret_cast<Object*>(handle);
  if (object->kind != kind) Stop("a descriptor of another kind, or one destroyed");
  return object;
}

template <typename Object, typename Handle>
cublasStatus_t Destroy(Handle handle, Kind kind) {
  Object* object = Checked<Object>(handle, kind);
  if (object == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  object->kind = Kind{};
  delete object;
  return CUBLAS_STATUS_SUCCESS;
}

// The value of an attribute: CUBLAS_STATUS_INVALID_VALUE unless there are just its bytes.
template <typename T>
cublasStatus_t Read(const void* buffer, size_t bytes, T* value) {
  if (buffer == nullptr || bytes != sizeof(T)) {
    return Refuse(CUBLAS_STATUS_INVALID_VALUE,
                  Concat("an attribute of ", sizeof(T), " bytes set from ", bytes));
  }
  std::memcpy(value, buffer, sizeof(T));
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t ReadTranspose(const void* buffer, size_t bytes, bool* transpose) {
  int32_t operation = 0;
  if (const cublasStatus_t status = Read(buffer, bytes, &operation)) return status;
  if (operation != CUBLAS_OP_N && operation != CUBLAS_OP_T) {
    Stop(Concat("operation ", operation, " on a matrix"));
  }
  *transpose = operation == CUBLAS_OP_T;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t ReadAlignment(const void* buffer, size_t bytes, uint32_t* alignment) {
  uint32_t value = 0;
  if (const cublasStatus_t status = Read(buffer, bytes, &value)) return status;
  if (value == 0 || (value & (value - 1)) != 0) {
    return Refuse(CUBLAS_STATUS_INVALID_VALUE, Concat("an alignment of ", value, " bytes"));
  }
  *alignment = value;
  return CUBLAS_STATUS_SUCCESS;
}

struct LiveHandles {
  std::mutex mutex;
  std::set<cublasLtHandle_t> handles;
};
LiveHandles& Live() {
  static auto* live = new LiveHandles;
  return *live;
}

}  // namespace

void Stop(const std::string& what) {
  std::fprintf(stderr, "emulated cuBLASLt: %s\n", what.c_str());
  std::abort();
}

cublasStatus_t Refuse(cublasStatus_t status, const std::string& why) {
  Report("cuBLASLt: " + why);
  return status;
}

const Layout* Get(cublasLtMatrixLayout_t handle) { return Checked<Layout>(handle, Kind::kLayout); }
const Matmul* Get(cublasLtMatmulDesc_t handle) { return Checked<Matmul>(handle, Kind::kMatmul); }
const Preference* Get(cublasLtMatmulPreference_t handle) {
  return Checked<Preference>(handle, Kind::kPreference);
}

bool IsLiveHandle(cublasLtHandle_t handle) {
  const std::scoped_lock lock(Live().mutex);
  return Live().handles.count(handle) > 0;
}

int DeviceOf(cublasLtHandle_t handle) { return *reinterpret_cast<const int*>(handle); }

}  // namespace halftone::emulation::blas

using namespace halftone::emulation::blas;  // NOLINT: definitions of C functions

extern "C" {

const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_SUCCESS:
      return "CUBLAS_STATUS_SUCCESS";
    case CUBLAS_STATUS_NOT_INITIALIZED:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return "CUBLAS_STATUS_ARCH_MISMATCH";
    case CUBLAS_STATUS_MAPPING_ERROR:
      return "CUBLAS_STATUS_MAPPING_ERROR";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case CUBLAS_STATUS_INTERNAL_ERROR:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_LICENSE_ERROR:
      return "CUBLAS_STATUS_LICENSE_ERROR";
  }
  return "";
}

size_t cublasLtGetVersion() { return CUBLAS_VERSION; }

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  int device = 0;
  if (cudaGetDevice(&device) != cudaSuccess) return CUBLAS_STATUS_NOT_INITIALIZED;
  *handle = reinterpret_cast<cublasLtHandle_t>(new int(device));
  const std::scoped_lock lock(Live().mutex);
  Live().handles.insert(*handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  const std::scoped_lock lock(Live().mutex);
  if (Live().handles.erase(handle) == 0) return CUBLAS_STATUS_NOT_INITIALIZED;
  delete reinterpret_cast<int*>(handle);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType type,
                                          uint64_t rows, uint64_t columns,
                                          int64_t leading_dimension) {
  if (layout == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto* object = new Layout;
  object->type = type;
  object->rows = rows;
  object->columns = columns;
  object->leading_dimension = leading_dimension;
  *layout = reinterpret_cast<cublasLtMatrixLayout_t>(object);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return Destroy<Layout>(layout, Kind::kLayout);
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t layout,
                                                cublasLtMatrixLayoutAttribute_t attribute,
                                                const void* buffer, size_t bytes) {
  auto* object = const_cast<Layout*>(Get(layout));
  if (object == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
      return Read(buffer, bytes, &object->batch_count);
    case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
      return Read(buffer, bytes, &object->batch_stride);
    default:
      Stop(halftone::Concat("layout attribute ", attribute));
  }
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* matmul, cublasComputeType_t compute,
                                        cudaDataType scale_type) {
  if (matmul == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  auto* object = new Matmul;
  object->compute = compute;
  object->scale_type = scale_type;
  *matmul = reinterpret_cast<cublasLtMatmulDesc_t>(object);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t matmul) {
  return Destroy<Matmul>(matmul, Kind::kMatmul);
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t matmul,
                                              cublasLtMatmulDescAttributes_t attribute,
                                              const void* buffer, size_t bytes) {
  auto* object = const_cast<Matmul*>(Get(matmul));
  if (object == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return ReadTranspose(buffer, bytes, &object->transpose_a);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return ReadTranspose(buffer, bytes, &object->transpose_b);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: {
      uint32_t epilogue = 0;
      if (const cublasStatus_t status = Read(buffer, bytes, &epilogue)) return status;
      if (epilogue != CUBLASLT_EPILOGUE_DEFAULT && epilogue != CUBLASLT_EPILOGUE_BIAS) {
        Stop(halftone::Concat("epilogue ", epilogue));
      }
      object->has_bias = epilogue == CUBLASLT_EPILOGUE_BIAS;
      return CUBLAS_STATUS_SUCCESS;
    }
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return Read(buffer, bytes, &object->bias);
    case CUBLASLT_MATMUL_DESC_A_SCALE_POINTER:
      return Read(buffer, bytes, &object->a_scale);
    case CUBLASLT_MATMUL_DESC_B_SCALE_POINTER:
      return Read(buffer, bytes, &object->b_scale);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return Read(buffer, bytes, &object->bias_type);
    default:
      Stop(halftone::Concat("matmul attribute ", attribute));
  }
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  if (preference == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  *preference = reinterpret_cast<cublasLtMatmulPreference_t>(new Preference);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return Destroy<Preference>(preference, Kind::kPreference);
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute,
                                                    const void* buffer, size_t bytes) {
  auto* object = const_cast<Preference*>(Get(preference));
  if (object == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return Read(buffer, bytes, &object->workspace_bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return Read(buffer, bytes, &object->reduction_schemes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
      return ReadAlignment(buffer, bytes, &object->alignment_a);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
      return ReadAlignment(buffer, bytes, &object->alignment_b);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
      return ReadAlignment(buffer, bytes, &object->alignment_c);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return ReadAlignment(buffer, bytes, &object->alignment_d);
    default:
      Stop(halftone::Concat("preference attribute ", attribute));
  }
}

}  // extern "C"
