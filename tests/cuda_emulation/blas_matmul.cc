// Choosing an algorithm and running it, in the emulated cuBLASLt. There are two: one that sums over
// k in one go, and one that splits k and needs a workspace, which the heuristic prefers for long
// sums. Both hold callers to the alignments they promised, where the real library's depend on the
// kernel behind.
#include <algorithm>
#include <cstring>
#include <vector>

#include "halftone/core/strings.h"
#include "halftone/tests/cuda_emulation/blas_types.h"
#include "halftone/tests/cuda_emulation/library_work.h"

namespace halftone::emulation::blas {
namespace {

constexpr uint64_t kLongSum = 48;
constexpr uint32_t kMaxAlignment = 256;
constexpr uint64_t kWorkspaceAlignment = 256;  // documented

// Of a pointer, as far as it matters. Null: nothing is promised against.
uint32_t AlignmentOf(const void* p) {
  const auto address = reinterpret_cast<uintptr_t>(p);
  if (address == 0) return kMaxAlignment;
  return static_cast<uint32_t>(std::min<uintptr_t>(address & (~address + 1), kMaxAlignment));
}

Algorithm MakeAlgorithm(uint32_t splits, const Product& product, const Preference& preference) {
  Algorithm algorithm{};
  algorithm.magic = Algorithm::kMagic;
  algorithm.splits = splits;
  algorithm.alignment_a = preference.alignment_a;
  algorithm.alignment_b = preference.alignment_b;
  algorithm.alignment_c = preference.alignment_c;
  algorithm.alignment_d = preference.alignment_d;
  algorithm.alignment_bias = AlignmentOf(product.matmul.bias);
  algorithm.checksum = ChecksumOf(algorithm);
  return algorithm;
}

cublasStatus_t Invalid(const std::string& why) { return Refuse(CUBLAS_STATUS_INVALID_VALUE, why); }

struct Range {
  const char* name;
  const void* data;
  uint64_t bytes;
  uint64_t alignment;
};

cublasStatus_t CheckRange(const Range& range) {
  if (range.data == nullptr) return Invalid(Concat(range.name, " is null"));
  if (!IsDevicePointer(range.data)) {
    return Invalid(Concat(range.name, ": ", DescribePointer(range.data)));
  }
  if (!IsDeviceMemory(range.data, range.bytes)) {
    return Invalid(
        Concat(range.name, ": ", range.bytes, " bytes from ", DescribePointer(range.data)));
  }
  if (reinterpret_cast<uintptr_t>(range.data) % range.alignment != 0) {
    return Invalid(Concat(range.name, ": ", range.data, " is no multiple of ", range.alignment));
  }
  return CUBLAS_STATUS_SUCCESS;
}

bool Overlap(const Range& a, const Range& b) {
  const auto* const a_begin = static_cast<const char*>(a.data);
  const auto* const b_begin = static_cast<const char*>(b.data);
  return a_begin < b_begin + b.bytes && b_begin < a_begin + a.bytes;
}

cublasStatus_t CheckMemory(const Product& p, const Algorithm& algorithm, const void* a,
                           const void* b, const void* c, const void* d, const void* workspace,
                           size_t workspace_bytes) {
  const Range a_range{"A", a, Product::Bytes(p.a), algorithm.alignment_a};
  const Range b_range{"B", b, Product::Bytes(p.b), algorithm.alignment_b};
  const Range c_range{"C", c, Product::Bytes(p.c), algorithm.alignment_c};
  const Range d_range{"D", d, Product::Bytes(p.d), algorithm.alignment_d};
  for (const Range& range : {a_range, b_range, c_range, d_range}) {
    if (const cublasStatus_t status = CheckRange(range)) return status;
  }
  if (Overlap(a_range, d_range) || Overlap(b_range, d_range)) return Invalid("D lies over A or B");
  const uint64_t needed = p.WorkspaceBytes(algorithm);
  if (workspace_bytes < needed) {
    return Invalid(
        Concat("workspace of ", workspace_bytes, " bytes; the algorithm needs ", needed));
  }
  if (workspace_bytes > 0) {
    const Range range{"workspace", workspace, workspace_bytes, kWorkspaceAlignment};
    if (const cublasStatus_t status = CheckRange(range)) return status;
    if (Overlap(range, a_range) || Overlap(range, b_range) || Overlap(range, d_range)) {
      return Invalid("the workspace lies over an operand");
    }
  }
  for (const void* scale : {p.matmul.a_scale, p.matmul.b_scale}) {
    if (scale == nullptr) continue;
    if (const cublasStatus_t status =
            CheckRange({"a scale", scale, sizeof(float), sizeof(float)})) {
      return status;
    }
  }
  if (p.matmul.has_bias) {
    return CheckRange(
        {"bias", p.matmul.bias, p.m() * SizeOf(p.bias_type()), algorithm.alignment_bias});
  }
  return CUBLAS_STATUS_SUCCESS;
}

float ScalarAt(const void* scalar) {
  float value = 0;
  std::memcpy(&value, scalar, sizeof(value));
  return value;
}

}  // namespace

uint32_t ChecksumOf(const Algorithm& a) {
  uint32_t sum = a.magic;
  for (const uint32_t part :
       {a.splits, a.alignment_a, a.alignment_b, a.alignment_c, a.alignment_d, a.alignment_bias}) {
    sum = sum * 31 + part;
  }
  return sum;
}

bool Decode(const cublasLtMatmulAlgo_t* bytes, Algorithm* algorithm) {
  std::memcpy(algorithm, bytes, sizeof(*algorithm));
  return algorithm->magic == Algorithm::kMagic && algorithm->checksum == ChecksumOf(*algorithm);
}

}  // namespace halftone::emulation::blas

using namespace halftone::emulation::blas;  // NOLINT: definitions of C functions
namespace emulation = halftone::emulation;

extern "C" {

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preference_handle,
                                              int requested,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* returned) {
  if (!IsLiveHandle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (requested < 1 || results == nullptr || returned == nullptr) return Invalid("no results");
  *returned = 0;
  Product product;
  if (const cublasStatus_t status = MakeProduct(matmul, a, b, c, d, &product)) return status;
  const Preference* preference = Get(preference_handle);
  if (preference == nullptr) return Invalid("the preference is null");
  using Splits = std::vector<uint32_t>;
  for (const uint32_t splits : product.k() >= kLongSum ? Splits{3, 1, 2} : Splits{1, 2}) {
    const Algorithm algorithm = MakeAlgorithm(splits, product, *preference);
    const uint64_t workspace = product.WorkspaceBytes(algorithm);
    const bool sums_in_workspace =
        (preference->reduction_schemes & CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) != 0;
    if (splits > 1 &&
        (workspace > preference->workspace_bytes || !sums_in_workspace || product.k() < splits)) {
      continue;
    }
    if (*returned == requested) break;
    cublasLtMatmulHeuristicResult_t& result = results[(*returned)++];
    result = {};
    std::memcpy(&result.algo, &algorithm, sizeof(algorithm));
    result.workspaceSize = workspace;
    result.state = CUBLAS_STATUS_SUCCESS;
    result.wavesCount = 1;
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algo,
                                       cublasLtMatmulHeuristicResult_t* result) {
  if (!IsLiveHandle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (algo == nullptr || result == nullptr) return Invalid("no algorithm or no result");
  Product product;
  if (const cublasStatus_t status = MakeProduct(matmul, a, b, c, d, &product)) return status;
  Algorithm algorithm;
  if (!Decode(algo, &algorithm) || product.k() < algorithm.splits) {
    return Invalid("no algorithm for this product");
  }
  result->workspaceSize = product.WorkspaceBytes(algorithm);
  result->state = CUBLAS_STATUS_SUCCESS;
  result->wavesCount = 1;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t matmul,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t a_layout,
                              const void* b, cublasLtMatrixLayout_t b_layout, const void* beta,
                              const void* c, cublasLtMatrixLayout_t c_layout, void* d,
                              cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t* algo,
                              void* workspace, size_t workspace_bytes, cudaStream_t stream) {
  if (!IsLiveHandle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  Product product;
  if (const cublasStatus_t status =
          MakeProduct(matmul, a_layout, b_layout, c_layout, d_layout, &product)) {
    return status;
  }
  if (alpha == nullptr || beta == nullptr) return Invalid("alpha or beta is null");
  for (const void* scalar : {alpha, beta}) {
    if (emulation::IsDevicePointer(scalar)) Stop("a scalar in device memory");
  }
  if (ScalarAt(alpha) != 1 || ScalarAt(beta) != 0) Stop("other factors than alpha = 1, beta = 0");
  if (algo == nullptr) Stop("a product without an algorithm");
  Algorithm algorithm;
  if (!Decode(algo, &algorithm) || product.k() < algorithm.splits) {
    return Invalid("no algorithm for this product");
  }
  if (const cublasStatus_t status =
          CheckMemory(product, algorithm, a, b, c, d, workspace, workspace_bytes)) {
    return status;
  }
  int device = 0;
  cudaGetDevice(&device);
  if (device != DeviceOf(handle)) return Invalid("a handle of another device");
  const Operands operands{a, b, d, workspace};
  const cudaError_t error =
      emulation::StreamWork(stream, [=] { Multiply(product, operands, algorithm); });
  return error == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}

}  // extern "C"
