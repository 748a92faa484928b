// The emulated cuBLASLt: what its handles point to, and its complaints.
//
// The subset that the backend calls, with the argument checks of the real library (cuBLAS 13
// documentation, cublasLtMatmul, and the comments of cublasLt.h). What is not in the subset ends
// the program with a message: a test never passes on something that was not emulated.
#pragma once

#include <cublasLt.h>

#include <cstdint>
#include <string>

namespace halftone::emulation::blas {

// First in each object, so that a handle of another kind, or one destroyed, is found out.
enum class Kind : uint64_t { kLayout = 0x4c61796f75740001, kMatmul, kPreference };

struct Layout {
  Kind kind = Kind::kLayout;
  cudaDataType type;
  uint64_t rows, columns;  // column-major
  int64_t leading_dimension;
  int32_t batch_count = 1;
  int64_t batch_stride = 0;
};

struct Matmul {
  Kind kind = Kind::kMatmul;
  cublasComputeType_t compute;
  cudaDataType scale_type;
  bool transpose_a = false, transpose_b = false;
  bool has_bias = false;  // CUBLASLT_EPILOGUE_BIAS
  // Of 8-bit operands, in device memory; null: 1.
  const void *a_scale = nullptr, *b_scale = nullptr;
  const void* bias = nullptr;
  int32_t bias_type = -1;  // -1: D's
};

struct Preference {
  Kind kind = Kind::kPreference;
  uint64_t workspace_bytes = 0;
  uint32_t reduction_schemes = CUBLASLT_REDUCTION_SCHEME_MASK;
  uint32_t alignment_a = 256, alignment_b = 256, alignment_c = 256, alignment_d = 256;
};

// What the opaque cublasLtMatmulAlgo_t holds here.
struct Algorithm {
  static constexpr uint32_t kMagic = 0x48744c74;
  uint32_t magic;
  uint32_t splits;  // parts of k, summed in f32 through the workspace if more than one
  uint32_t alignment_a, alignment_b, alignment_c, alignment_d, alignment_bias;  // promised, bytes
  uint32_t checksum;
  uint64_t unused[4];
};
static_assert(sizeof(Algorithm) == sizeof(cublasLtMatmulAlgo_t));

// Ends the program: `what` is not emulated, or no argument for the real library either.
[[noreturn]] void Stop(const std::string& what);
// Reports `why` and gives the status.
cublasStatus_t Refuse(cublasStatus_t status, const std::string& why);

// The object behind a handle. Ends the program if it is of another kind or destroyed; null stays
// null.
const Layout* Get(cublasLtMatrixLayout_t handle);
const Matmul* Get(cublasLtMatmulDesc_t handle);
const Preference* Get(cublasLtMatmulPreference_t handle);
bool IsLiveHandle(cublasLtHandle_t handle);
// That was current when the live handle was made.
int DeviceOf(cublasLtHandle_t handle);

bool IsF8(cudaDataType type);
// Of an element, in bytes. Stops for other types than f16, bf16, f32 and those of 8 bits.
size_t SizeOf(cudaDataType type);

// The four matrices of D = op(A) op(B) and how they are multiplied.
struct Product {
  Matmul matmul;
  Layout a, b, c, d;
  uint64_t m() const { return d.rows; }
  uint64_t n() const { return d.columns; }
  uint64_t k() const { return matmul.transpose_a ? a.rows : a.columns; }
  cudaDataType bias_type() const {
    return matmul.bias_type == -1 ? d.type : static_cast<cudaDataType>(matmul.bias_type);
  }
  // Bytes of the matrices of a whole batch, from the first element to the last.
  static uint64_t Bytes(const Layout& layout);
  uint64_t WorkspaceBytes(const Algorithm& algorithm) const;
};

// Everything but pointers: types, shapes, leading dimensions, batches.
cublasStatus_t MakeProduct(cublasLtMatmulDesc_t matmul, cublasLtMatrixLayout_t a,
                           cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
                           cublasLtMatrixLayout_t d, Product* product);

uint32_t ChecksumOf(const Algorithm& algorithm);
// False for bytes that are none of ours.
bool Decode(const cublasLtMatmulAlgo_t* bytes, Algorithm* algorithm);

struct Operands {
  const void *a, *b;
  void *d, *workspace;
};
// Multiplies, on the device's time.
void Multiply(const Product& product, const Operands& operands, const Algorithm& algorithm);

}  // namespace halftone::emulation::blas
