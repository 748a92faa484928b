#include "halftone/kernels/cuda/cublaslt/plan.h"

#include <algorithm>
#include <limits>

#include "halftone/core/align.h"
#include "halftone/kernels/cuda/runtime/autotune.h"
#include "halftone/kernels/cuda/runtime/autotune_cache.h"
#include "halftone/kernels/cuda/runtime/status.h"

namespace halftone::cuda {
namespace {

constexpr int kCandidates = 8;
// The library's demand on its workspace; ours is aligned to less.
constexpr size_t kWorkspaceAlignment = 256;

cublasComputeType_t ComputeTypeOf(const MatmulGeometry& g) {
  return g.operand_dtype == DType::kF32 && g.tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
                                                  : CUBLAS_COMPUTE_32F;
}

size_t WithRoomToAlign(size_t bytes) { return bytes == 0 ? 0 : bytes + kWorkspaceAlignment; }

absl::Status SetPointer(cublasLtMatmulDesc_t matmul, cublasLtMatmulDescAttributes_t attribute,
                        const void* pointer) {
  HT_CUBLASLT_RETURN_IF_ERROR(
      cublasLtMatmulDescSetAttribute(matmul, attribute, &pointer, sizeof(pointer)));
  return absl::OkStatus();
}

absl::Status SetBias(cublasLtMatmulDesc_t matmul, const void* bias) {
  return SetPointer(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, bias);
}

// The library's first operand is B.
absl::Status SetFactors(cublasLtMatmulDesc_t matmul, const void* a, const void* b) {
  HT_RETURN_IF_ERROR(SetPointer(matmul, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, b));
  return SetPointer(matmul, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, a);
}

// Source: the documentation of cublasLtMatmul, FP8 kernels; columns-major, its operands are to be
// "TN", and extents multiples of 16, of which those of the rows of y need not be.
absl::Status SupportsF8(const MatmulGeometry& g) {
  if (g.transpose_a || !g.transpose_b) return Unimplemented("8-bit operands across k");
  if (g.k % 16 != 0 || g.n % 16 != 0) {
    return Unimplemented("8-bit operands of ", g.n, "x", g.k, ", no multiples of 16");
  }
  if (g.operand_dtype == DType::kF8E5M2 && g.b_dtype == DType::kF8E5M2) {
    return Unimplemented("two operands of f8e5m2");
  }
  if (g.has_bias && g.output_dtype == DType::kF32) return Unimplemented("an f32 bias");
  return absl::OkStatus();
}

int64_t BytesOf(int64_t matrix, int64_t count, int64_t stride, DType dtype) {
  return (matrix + (count - 1) * stride) * static_cast<int64_t>(SizeOf(dtype));
}

}  // namespace

absl::Status CublasLtPlan::Supports(const MatmulGeometry& g) {
  if (g.operand_dtype == DType::kF64) return Unimplemented("f64 is for checking, not for speed");
  if (g.has_bias && g.bias_dtype != g.output_dtype) {
    return Unimplemented("a bias in ", Name(g.bias_dtype), "; the library takes that of y");
  }
  if (g.is_trivial()) return Unimplemented("an empty product");
  if (IsF8(g.operand_dtype)) HT_RETURN_IF_ERROR(SupportsF8(g));
  if (g.batch.size() > 1) return Unimplemented("the batch repeats operands along some axes");
  constexpr int64_t kLimit = std::numeric_limits<int32_t>::max();
  if (std::max({g.m, g.n, g.k, g.batch_count()}) > kLimit) {
    return Unimplemented("extents beyond 32 bits");
  }
  return absl::OkStatus();
}

absl::StatusOr<CublasLtPlan> CublasLtPlan::Make(const MatmulGeometry& geometry) {
  HT_RETURN_IF_ERROR(Supports(geometry));
  CublasLtPlan plan;
  HT_RETURN_IF_ERROR(plan.Describe(geometry));
  HT_RETURN_IF_ERROR(plan.Choose(geometry));
  plan.workspace_bytes_ = WithRoomToAlign(plan.algorithm_workspace_bytes_);
  return plan;
}

absl::StatusOr<std::string> CublasLtPlan::CacheKey(const MatmulGeometry& g) {
  int device = 0;
  HT_CUDA_RETURN_IF_ERROR(cudaGetDevice(&device));
  cudaDeviceProp properties;
  HT_CUDA_RETURN_IF_ERROR(cudaGetDeviceProperties(&properties, device));
  std::string key = Concat("cublaslt ", cublasLtGetVersion(), "; ", properties.name, " ",
                           properties.major, ".", properties.minor, "; ", g.m, "x", g.n, "x", g.k,
                           g.transpose_a ? " ta" : "", g.transpose_b ? " tb" : "");
  for (const auto& axis : g.batch) {
    key += Concat(" batch ", axis.extent, "/", axis.a_stride, "/", axis.b_stride);
  }
  const std::string b = g.b_dtype == g.operand_dtype ? "" : Concat(" ", Name(g.b_dtype));
  return key + Concat("; ", Name(g.operand_dtype), b, " ", Name(g.output_dtype),
                      g.has_bias ? " bias" : "", " compute ", static_cast<int>(ComputeTypeOf(g)),
                      " align ", kAlignment);
}

absl::Status CublasLtPlan::Describe(const MatmulGeometry& g) {
  HT_ASSIGN_OR_RETURN(handle_, CublasLtHandle());
  has_bias_ = g.has_bias;
  // The library's first operand is B.
  HT_ASSIGN_OR_RETURN(matmul_, MakeLtMatmulDesc(ComputeTypeOf(g), g.transpose_b, g.transpose_a));
  if (has_bias_) {
    const uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    HT_CUBLASLT_RETURN_IF_ERROR(cublasLtMatmulDescSetAttribute(
        matmul_.get(), CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue)));
    // The heuristic takes the bias's alignment from its address.
    HT_RETURN_IF_ERROR(SetBias(matmul_.get(), reinterpret_cast<const void*>(kAlignment)));
  }
  has_factors_ = IsF8(g.operand_dtype);
  if (has_factors_) HT_RETURN_IF_ERROR(SetFactors(matmul_.get(), nullptr, nullptr));
  const auto count = static_cast<int32_t>(g.batch_count());
  const int64_t a_stride = g.batch.empty() ? 0 : g.batch[0].a_stride;
  const int64_t b_stride = g.batch.empty() ? 0 : g.batch[0].b_stride;
  const auto [a_rows, a_columns] = g.transpose_a ? std::pair(g.m, g.k) : std::pair(g.k, g.m);
  const auto [b_rows, b_columns] = g.transpose_b ? std::pair(g.k, g.n) : std::pair(g.n, g.k);
  HT_ASSIGN_OR_RETURN(a_, MakeLtMatrixLayout(g.operand_dtype, a_rows, a_columns, count, a_stride));
  HT_ASSIGN_OR_RETURN(b_, MakeLtMatrixLayout(g.b_dtype, b_rows, b_columns, count, b_stride));
  HT_ASSIGN_OR_RETURN(y_, MakeLtMatrixLayout(g.output_dtype, g.n, g.m, count, g.m * g.n));
  return absl::OkStatus();
}

absl::Status CublasLtPlan::Choose(const MatmulGeometry& geometry) {
  const bool measures = AutotuneEnabled();
  std::string key;
  if (measures) {
    HT_ASSIGN_OR_RETURN(key, CacheKey(geometry));
    const auto known = AutotuneCache::Global().Find(key);
    cublasLtMatmulAlgo_t stored;
    cublasLtMatmulHeuristicResult_t checked{};
    if (known && known->size() == sizeof(stored)) {
      std::memcpy(&stored, known->data(), sizeof(stored));
      if (cublasLtMatmulAlgoCheck(handle_, matmul_.get(), b_.get(), a_.get(), y_.get(), y_.get(),
                                  &stored, &checked) == CUBLAS_STATUS_SUCCESS &&
          checked.workspaceSize <= kWorkspaceLimit) {
        algorithm_ = stored;
        algorithm_workspace_bytes_ = checked.workspaceSize;
        return absl::OkStatus();
      }
    }
  }
  HT_ASSIGN_OR_RETURN(const LtPreference preference, MakeLtPreference(kWorkspaceLimit, kAlignment));
  cublasLtMatmulHeuristicResult_t found[kCandidates];
  int count = 0;
  HT_CUBLASLT_RETURN_IF_ERROR(
      cublasLtMatmulAlgoGetHeuristic(handle_, matmul_.get(), b_.get(), a_.get(), y_.get(), y_.get(),
                                     preference.get(), measures ? kCandidates : 1, found, &count));
  const auto* const end = std::remove_if(found, found + count, [](const auto& result) {
    return result.state != CUBLAS_STATUS_SUCCESS;
  });
  count = static_cast<int>(end - found);
  if (count == 0) return Unimplemented("the library has no algorithm");
  int fastest = 0;
  if (measures && count > 1) {
    const absl::StatusOr<int> measured = Measure(geometry, found, count);
    // No room to measure in: the library's order stands, and is not recorded.
    if (absl::IsResourceExhausted(measured.status())) {
      key.clear();
    } else if (!measured.ok()) {
      return measured.status();
    } else {
      fastest = *measured;
    }
  }
  algorithm_ = found[fastest].algo;
  algorithm_workspace_bytes_ = found[fastest].workspaceSize;
  if (!key.empty()) {
    AutotuneCache::Global().Store(
        key, std::string(reinterpret_cast<const char*>(&algorithm_), sizeof(algorithm_)));
  }
  return absl::OkStatus();
}

absl::StatusOr<int> CublasLtPlan::Measure(const MatmulGeometry& g,
                                          const cublasLtMatmulHeuristicResult_t* candidates,
                                          int count) const {
  const int64_t batches = g.batch_count();
  const int64_t a_stride = g.batch.empty() ? 0 : g.batch[0].a_stride;
  const int64_t b_stride = g.batch.empty() ? 0 : g.batch[0].b_stride;
  HT_ASSIGN_OR_RETURN(const ScratchMemory a, ScratchMemory::Allocate(BytesOf(
                                                 g.m * g.k, batches, a_stride, g.operand_dtype)));
  HT_ASSIGN_OR_RETURN(const ScratchMemory b,
                      ScratchMemory::Allocate(BytesOf(g.k * g.n, batches, b_stride, g.b_dtype)));
  HT_ASSIGN_OR_RETURN(const ScratchMemory y, ScratchMemory::Allocate(BytesOf(
                                                 g.m * g.n, batches, g.m * g.n, g.output_dtype)));
  HT_ASSIGN_OR_RETURN(const ScratchMemory bias,
                      ScratchMemory::Allocate(g.has_bias ? BytesOf(g.n, 1, 0, g.output_dtype) : 0));
  size_t most = 0;
  for (int i = 0; i < count; ++i) most = std::max(most, candidates[i].workspaceSize);
  HT_ASSIGN_OR_RETURN(const ScratchMemory workspace, ScratchMemory::Allocate(most));
  return FindFastest(count, [&](int i, cudaStream_t stream) {
    // Without factors an 8-bit operand is multiplied by 1.
    return Multiply(candidates[i].algo, candidates[i].workspaceSize,
                    {.a = a.data(), .b = b.data(), .bias = bias.data()}, y.data(), workspace.data(),
                    stream);
  });
}

absl::Status CublasLtPlan::Multiply(const cublasLtMatmulAlgo_t& algorithm,
                                    size_t algorithm_workspace_bytes, const Operands& operands,
                                    void* y, void* workspace, cudaStream_t stream) const {
  if (has_bias_) HT_RETURN_IF_ERROR(SetBias(matmul_.get(), operands.bias));
  if (has_factors_) {
    HT_RETURN_IF_ERROR(SetFactors(matmul_.get(), operands.a_factor, operands.b_factor));
  }
  const float one = 1, zero = 0;
  HT_CUBLASLT_RETURN_IF_ERROR(cublasLtMatmul(
      handle_, matmul_.get(), &one, operands.b, b_.get(), operands.a, a_.get(), &zero, y, y_.get(),
      y, y_.get(), &algorithm, algorithm_workspace_bytes == 0 ? nullptr : workspace,
      algorithm_workspace_bytes, stream));
  return absl::OkStatus();
}

absl::Status CublasLtPlan::Run(const Operands& operands, void* y, void* workspace,
                               cudaStream_t stream) const {
  return Multiply(algorithm_, algorithm_workspace_bytes_, operands, y,
                  AlignUp(workspace, kWorkspaceAlignment), stream);
}

}  // namespace halftone::cuda
