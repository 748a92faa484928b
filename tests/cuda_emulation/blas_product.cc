// What the emulated cuBLASLt checks of a product before it asks for memory, and the product itself.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "halftone/core/strings.h"
#include "halftone/tests/cuda_emulation/blas_types.h"
#include "halftone/tests/cuda_emulation/control.h"

namespace halftone::emulation::blas {
namespace {

// What the documentation of cublasLtMatmul asks of 8-bit operands: the device, types, "TN", and
// extents of which only the columns of D are free.
cublasStatus_t CheckF8(const Product& p) {
  const auto refuse = [](const std::string& why) {
    return Refuse(CUBLAS_STATUS_NOT_SUPPORTED, why);
  };
  const Options options = GetOptions();
  if (options.compute_major * 10 + options.compute_minor < 89) {
    return refuse("8-bit operands on a device below compute capability 8.9");
  }
  if (p.matmul.compute != CUBLAS_COMPUTE_32F || !IsF8(p.b.type)) {
    return refuse("an 8-bit operand beside another, or summed in less than f32");
  }
  if (p.a.type == CUDA_R_8F_E5M2 && p.b.type == CUDA_R_8F_E5M2) return refuse("E5M2 twice");
  if (p.d.type != CUDA_R_16F && p.d.type != CUDA_R_16BF && p.d.type != CUDA_R_32F) {
    return refuse(Concat("8-bit operands and output of type ", p.d.type));
  }
  if (!p.matmul.transpose_a || p.matmul.transpose_b) return refuse("8-bit operands not TN");
  if (p.m() % 16 != 0 || p.k() % 16 != 0) {
    return refuse(Concat("8-bit operands of m = ", p.m(), ", k = ", p.k()));
  }
  return CUBLAS_STATUS_SUCCESS;
}

// The table of supported types in the documentation of cublasLtMatmul, its real 16- and 32-bit
// floating rows.
bool IsSupported(cublasComputeType_t compute, cudaDataType scale, cudaDataType operands,
                 cudaDataType output) {
  if (scale != CUDA_R_32F) return false;
  const bool is_f32 = operands == CUDA_R_32F && output == CUDA_R_32F;
  if (compute == CUBLAS_COMPUTE_32F_FAST_TF32) return is_f32;
  const bool is_16_bit = operands == CUDA_R_16F || operands == CUDA_R_16BF;
  return is_f32 || (is_16_bit && (output == operands || output == CUDA_R_32F));
}

cublasStatus_t CheckTypes(const Product& p) {
  const cublasComputeType_t compute = p.matmul.compute;
  if (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_FAST_TF32) {
    Stop(Concat("compute type ", compute));
  }
  const auto refuse = [](const std::string& why) {
    return Refuse(CUBLAS_STATUS_NOT_SUPPORTED, why);
  };
  if (p.c.type != p.d.type) return refuse("C and D of different types");
  if (IsF8(p.a.type)) {
    if (const cublasStatus_t status = CheckF8(p)) return status;
  } else if (p.a.type != p.b.type) {
    return refuse("A and B of different types");
  } else if (!IsSupported(compute, p.matmul.scale_type, p.a.type, p.d.type)) {
    return refuse(Concat("compute type ", compute, " with scale type ", p.matmul.scale_type,
                         ", operands of type ", p.a.type, " and output of type ", p.d.type));
  }
  if (p.matmul.has_bias && p.bias_type() != p.d.type) {
    return refuse(Concat("a bias of type ", p.bias_type(), " for D of type ", p.d.type));
  }
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CheckLayout(const char* name, const Layout& l) {
  const auto refuse = [&](const std::string& why) {
    return Refuse(CUBLAS_STATUS_INVALID_VALUE, Concat(name, ": ", why));
  };
  if (l.rows == 0 || l.columns == 0) return refuse("an empty matrix");
  if (l.leading_dimension < 0 || static_cast<uint64_t>(l.leading_dimension) < l.rows) {
    return refuse(Concat("leading dimension ", l.leading_dimension, " of ", l.rows, " rows"));
  }
  if (l.batch_count < 1) return refuse(Concat("batch of ", l.batch_count));
  if (l.batch_count > 1 && l.batch_stride < 0) return refuse("a negative batch stride");
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t CheckShapes(const Product& p) {
  for (const auto& [name, layout] : {std::pair{"A", &p.a}, {"B", &p.b}, {"C", &p.c}, {"D", &p.d}}) {
    if (const cublasStatus_t status = CheckLayout(name, *layout)) return status;
    if (layout->batch_count != p.d.batch_count) {
      return Refuse(CUBLAS_STATUS_INVALID_VALUE, Concat("batch of ", layout->batch_count, " in ",
                                                        name, ", of ", p.d.batch_count, " in D"));
    }
  }
  const uint64_t a_rows = p.matmul.transpose_a ? p.a.columns : p.a.rows;
  const uint64_t b_rows = p.matmul.transpose_b ? p.b.columns : p.b.rows;
  const uint64_t b_columns = p.matmul.transpose_b ? p.b.rows : p.b.columns;
  if (a_rows != p.m() || b_columns != p.n() || b_rows != p.k() || p.c.rows != p.d.rows ||
      p.c.columns != p.d.columns) {
    return Refuse(CUBLAS_STATUS_INVALID_VALUE, "shapes that do not fit one another");
  }
  const uint64_t d_extent = (p.n() - 1) * p.d.leading_dimension + p.m();
  if (p.d.batch_count > 1 && static_cast<uint64_t>(p.d.batch_stride) < d_extent) {
    return Refuse(CUBLAS_STATUS_INVALID_VALUE, "D: matrices of the batch overlap");
  }
  return CUBLAS_STATUS_SUCCESS;
}

float Load(const void* data, cudaDataType type, uint64_t i) {
  switch (type) {
    case CUDA_R_16F:
      return __half2float(static_cast<const __half*>(data)[i]);
    case CUDA_R_16BF:
      return __bfloat162float(static_cast<const __nv_bfloat16*>(data)[i]);
    case CUDA_R_8F_E4M3:
      return static_cast<float>(static_cast<const __nv_fp8_e4m3*>(data)[i]);
    case CUDA_R_8F_E5M2:
      return static_cast<float>(static_cast<const __nv_fp8_e5m2*>(data)[i]);
    default:
      return static_cast<const float*>(data)[i];
  }
}

void Store(void* data, cudaDataType type, uint64_t i, float value) {
  switch (type) {
    case CUDA_R_16F:
      static_cast<__half*>(data)[i] = __float2half_rn(value);
      return;
    case CUDA_R_16BF:
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16_rn(value);
      return;
    default:
      static_cast<float*>(data)[i] = value;
  }
}

// To the nearest of 10 bits after the point, ties to even.
float RoundToTf32(float x) {
  if (!std::isfinite(x)) return x;
  uint32_t bits = 0;
  std::memcpy(&bits, &x, sizeof(bits));
  bits += 0xfff + ((bits >> 13) & 1);
  bits &= ~uint32_t{0x1fff};
  std::memcpy(&x, &bits, sizeof(bits));
  return x;
}

// Matrix `batch` of an operand, as f32 in column-major order, transposed if asked.
std::vector<float> Unpack(const void* data, const Layout& l, bool transpose, int batch,
                          bool to_tf32) {
  std::vector<float> values(l.rows * l.columns);
  for (uint64_t column = 0; column < l.columns; ++column) {
    for (uint64_t row = 0; row < l.rows; ++row) {
      const float x =
          Load(data, l.type,
               static_cast<uint64_t>(batch) * l.batch_stride + column * l.leading_dimension + row);
      values[transpose ? column + row * l.columns : row + column * l.rows] =
          to_tf32 ? RoundToTf32(x) : x;
    }
  }
  return values;
}

}  // namespace

bool IsF8(cudaDataType type) { return type == CUDA_R_8F_E4M3 || type == CUDA_R_8F_E5M2; }

size_t SizeOf(cudaDataType type) {
  switch (type) {
    case CUDA_R_8F_E4M3:
    case CUDA_R_8F_E5M2:
      return 1;
    case CUDA_R_16F:
    case CUDA_R_16BF:
      return 2;
    case CUDA_R_32F:
      return 4;
    default:
      Stop(Concat("matrices of type ", type));
  }
}

uint64_t Product::Bytes(const Layout& l) {
  const uint64_t elements = static_cast<uint64_t>(l.batch_count - 1) * l.batch_stride +
                            (l.columns - 1) * l.leading_dimension + l.rows;
  return elements * SizeOf(l.type);
}

uint64_t Product::WorkspaceBytes(const Algorithm& algorithm) const {
  return algorithm.splits == 1 ? 0 : sizeof(float) * algorithm.splits * m() * n();
}

cublasStatus_t MakeProduct(cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
                           cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                           cublasLtMatrixLayout_t d, Product* product) {
  if (Get(matmul) == nullptr || Get(a) == nullptr || Get(b) == nullptr || Get(c) == nullptr ||
      Get(d) == nullptr) {
    return Refuse(CUBLAS_STATUS_INVALID_VALUE, "a descriptor is null");
  }
  *product = {*Get(matmul), *Get(a), *Get(b), *Get(c), *Get(d)};
  if (const cublasStatus_t status = CheckTypes(*product)) return status;
  return CheckShapes(*product);
}

void Multiply(const Product& p, const Operands& operands, const Algorithm& algorithm) {
  const bool to_tf32 = p.matmul.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
  const uint64_t m = p.m(), n = p.n(), k = p.k(), splits = algorithm.splits;
  float factor_of_operands = 1;
  for (const void* scale : {p.matmul.a_scale, p.matmul.b_scale}) {
    if (scale != nullptr) factor_of_operands *= *static_cast<const float*>(scale);
  }
  for (int batch = 0; batch < p.d.batch_count; ++batch) {
    const std::vector<float> a =
        Unpack(operands.a, p.a, p.matmul.transpose_a, batch, to_tf32);  // [m, k]
    const std::vector<float> b =
        Unpack(operands.b, p.b, p.matmul.transpose_b, batch, to_tf32);  // [k, n]
    // Sums of the parts of k: the real library keeps them in the workspace, too.
    std::vector<float> whole(splits == 1 ? m * n : 0);
    float* const parts = splits == 1 ? whole.data() : static_cast<float*>(operands.workspace);
    std::fill(parts, parts + splits * m * n, 0.0F);
    for (uint64_t q = 0; q < k; ++q) {
      float* const part = parts + q * splits / k * m * n;
      for (uint64_t j = 0; j < n; ++j) {
        const float factor = b[j * k + q];
        for (uint64_t i = 0; i < m; ++i) part[j * m + i] += a[q * m + i] * factor;
      }
    }
    for (uint64_t j = 0; j < n; ++j) {
      for (uint64_t i = 0; i < m; ++i) {
        float sum = parts[j * m + i];
        for (uint64_t s = 1; s < splits; ++s) sum += parts[(s * n + j) * m + i];
        sum *= factor_of_operands;
        if (p.matmul.has_bias) sum += Load(p.matmul.bias, p.bias_type(), i);
        Store(operands.d, p.d.type,
              static_cast<uint64_t>(batch) * p.d.batch_stride + j * p.d.leading_dimension + i, sum);
      }
    }
  }
}

}  // namespace halftone::emulation::blas
