// The emulated cuBLASLt: products that the real library's documentation forbids are rejected, with
// the status it names; what is not emulated ends the program.
#include <cublasLt.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <utility>

#include "halftone/kernels/cuda/cublaslt/handles.h"
#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda_emulation/control.h"

namespace halftone::testing {
namespace {

using cuda::LtMatmulDesc;
using cuda::LtMatrixLayout;
using cuda::LtPreference;
using ::testing::HasSubstr;

struct MatrixSpec {
  cudaDataType type;
  uint64_t rows, columns;
  int64_t leading_dimension;
  int32_t batch_count = 1;
  int64_t batch_stride = 0;
};

// D [5, 3] = A [5, 64] B [64, 3] + bias [5] in f16, over memory of its own: valid as it is. A case
// changes what it is about.
struct Call {
  cublasComputeType_t compute = CUBLAS_COMPUTE_32F;
  cudaDataType scale = CUDA_R_32F;
  MatrixSpec a{CUDA_R_16F, 5, 64, 5}, b{CUDA_R_16F, 64, 3, 64}, c{CUDA_R_16F, 5, 3, 5}, d = c;
  int32_t transpose_a = CUBLAS_OP_N, transpose_b = CUBLAS_OP_N;
  uint32_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  int32_t bias_type = -1;
  const void* bias_at_choice = nullptr;
  uint32_t alignment = 16;
  int requested = 8;
  // From here on changed between choice and product.
  size_t workspace_bytes = 0;
  const void *a_data, *b_data, *bias_data;
  void *c_data, *d_data, *workspace_data;
  std::function<void(cublasLtMatmulAlgo_t&)> change_algorithm;
};

class EmulatedCublasLt : public ::testing::Test {
 protected:
  EmulatedCublasLt() {
    const auto handle = cuda::CublasLtHandle();
    EXPECT_TRUE(handle.ok());
    handle_ = *handle;
    CheckCuda(cudaMemset(a_.data(), 0, a_.bytes()));
    CheckCuda(cudaMemset(b_.data(), 0, b_.bytes()));
    CheckCuda(cudaMemset(bias_.data(), 0, bias_.bytes()));
  }

  static LtMatrixLayout Make(const MatrixSpec& spec) {
    cublasLtMatrixLayout_t layout = nullptr;
    EXPECT_EQ(cublasLtMatrixLayoutCreate(&layout, spec.type, spec.rows, spec.columns,
                                         spec.leading_dimension),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
                                               &spec.batch_count, sizeof(int32_t)),
              CUBLAS_STATUS_SUCCESS);
    EXPECT_EQ(cublasLtMatrixLayoutSetAttribute(layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET,
                                               &spec.batch_stride, sizeof(int64_t)),
              CUBLAS_STATUS_SUCCESS);
    return LtMatrixLayout(layout);
  }

  template <typename T>
  static void Set(const LtMatmulDesc& matmul, cublasLtMatmulDescAttributes_t attribute, T value) {
    EXPECT_EQ(cublasLtMatmulDescSetAttribute(matmul.get(), attribute, &value, sizeof(value)),
              CUBLAS_STATUS_SUCCESS);
  }

  // Chooses an algorithm for what `change` makes of a valid call, and runs it unless that failed.
  // `change_product` applies between the two.
  cublasStatus_t Run(
      const std::function<void(Call&)>& change,
      const std::function<void(Call&)>& change_product = [](Call&) {}) {
    Call call;
    call.a_data = a_.data();
    call.b_data = b_.data();
    call.bias_data = bias_.data();
    call.c_data = call.d_data = d_.data();
    call.workspace_data = workspace_.data();
    change(call);
    cublasLtMatmulDesc_t created = nullptr;
    EXPECT_EQ(cublasLtMatmulDescCreate(&created, call.compute, call.scale), CUBLAS_STATUS_SUCCESS);
    const LtMatmulDesc matmul(created);
    Set(matmul, CUBLASLT_MATMUL_DESC_TRANSA, call.transpose_a);
    Set(matmul, CUBLASLT_MATMUL_DESC_TRANSB, call.transpose_b);
    Set(matmul, CUBLASLT_MATMUL_DESC_EPILOGUE, call.epilogue);
    Set(matmul, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, call.bias_type);
    Set(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias_at_choice);
    const LtMatrixLayout a = Make(call.a), b = Make(call.b), c = Make(call.c), d = Make(call.d);
    auto preference = cuda::MakeLtPreference(size_t{1} << 20, call.alignment);
    EXPECT_TRUE(preference.ok());
    cublasLtMatmulHeuristicResult_t found[8];
    int count = 0;
    const cublasStatus_t chosen =
        cublasLtMatmulAlgoGetHeuristic(handle_, matmul.get(), a.get(), b.get(), c.get(), d.get(),
                                       preference->get(), call.requested, found, &count);
    if (chosen != CUBLAS_STATUS_SUCCESS) return chosen;
    EXPECT_GT(count, 0);
    call.workspace_bytes = found[0].workspaceSize;
    cublasLtMatmulAlgo_t algorithm = found[0].algo;
    change_product(call);
    if (call.change_algorithm) call.change_algorithm(algorithm);
    Set(matmul, CUBLASLT_MATMUL_DESC_BIAS_POINTER, call.bias_data);
    const float one = 1, zero = 0;
    const cublasStatus_t status =
        cublasLtMatmul(handle_, matmul.get(), &one, call.a_data, a.get(), call.b_data, b.get(),
                       &zero, call.c_data, c.get(), call.d_data, d.get(), &algorithm,
                       call.workspace_data, call.workspace_bytes, nullptr);
    EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    return status;
  }

  // Rejected when the algorithm is chosen, or when the product is asked for; with a report of why.
  void ExpectRejected(cublasStatus_t status, const std::string& why,
                      const std::function<void(Call&)>& change) {
    emulation::ClearErrors();
    EXPECT_EQ(Run(change), status) << why;
    EXPECT_THAT(emulation::LastReport(), HasSubstr(why));
  }
  void ExpectProductRejected(const std::string& why, const std::function<void(Call&)>& change) {
    emulation::ClearErrors();
    EXPECT_EQ(Run([](Call&) {}, change), CUBLAS_STATUS_INVALID_VALUE) << why;
    EXPECT_THAT(emulation::LastReport(), HasSubstr(why));
  }

  cublasLtHandle_t handle_ = nullptr;
  DeviceMemory a_{2 * 5 * 64}, b_{2 * 64 * 3}, d_{2 * 5 * 3}, bias_{2 * 5}, workspace_{1 << 10};
};

void* Shifted(const void* p, int bytes) { return static_cast<char*>(const_cast<void*>(p)) + bytes; }

TEST_F(EmulatedCublasLt, AcceptsTheValidCall) {
  EXPECT_EQ(Run([](Call&) {}), CUBLAS_STATUS_SUCCESS);
}

TEST_F(EmulatedCublasLt, RejectsTypesOutsideTheTable) {
  const auto rejects = [&](const std::string& why, const std::function<void(Call&)>& change) {
    ExpectRejected(CUBLAS_STATUS_NOT_SUPPORTED, why, change);
  };
  rejects("A and B of different types", [](Call& c) { c.b.type = CUDA_R_16BF; });
  rejects("C and D of different types", [](Call& c) { c.c.type = CUDA_R_32F; });
  rejects("output of type", [](Call& c) { c.c.type = c.d.type = CUDA_R_16BF; });
  rejects("output of type", [](Call& c) { c.a.type = c.b.type = CUDA_R_32F; });
  rejects("scale type", [](Call& c) { c.scale = CUDA_R_16F; });
  rejects("compute type", [](Call& c) { c.compute = CUBLAS_COMPUTE_32F_FAST_TF32; });
  rejects("a bias of type", [](Call& c) { c.bias_type = CUDA_R_32F; });
  rejects("a bias of type", [](Call& c) {
    c.c.type = c.d.type = CUDA_R_32F;
    c.bias_type = CUDA_R_16F;
  });
}

TEST_F(EmulatedCublasLt, RejectsShapesThatDoNotFit) {
  const auto rejects = [&](const std::string& why, const std::function<void(Call&)>& change) {
    ExpectRejected(CUBLAS_STATUS_INVALID_VALUE, why, change);
  };
  rejects("A: leading dimension 4 of 5 rows", [](Call& c) { c.a.leading_dimension = 4; });
  rejects("B: leading dimension 63", [](Call& c) { c.b.leading_dimension = 63; });
  rejects("D: leading dimension -5", [](Call& c) { c.d.leading_dimension = -5; });
  rejects("shapes that do not fit", [](Call& c) { c.transpose_a = CUBLAS_OP_T; });
  rejects("shapes that do not fit", [](Call& c) { c.transpose_b = CUBLAS_OP_T; });
  rejects("shapes that do not fit", [](Call& c) { c.b.rows = 63; });
  rejects("shapes that do not fit", [](Call& c) { c.c.columns = 2; });
  rejects("B: an empty matrix", [](Call& c) { c.b.columns = 0; });
  rejects("batch of 2 in A, of 1 in D", [](Call& c) { c.a.batch_count = 2; });
  rejects("A: batch of 0", [](Call& c) { c.a.batch_count = 0; });
  rejects("D: matrices of the batch overlap", [](Call& c) {
    c.a.batch_count = c.b.batch_count = c.c.batch_count = c.d.batch_count = 2;
    c.d.batch_stride = 14;
  });
  rejects("no results", [](Call& c) { c.requested = 0; });
}

TEST_F(EmulatedCublasLt, RejectsPointersThatAreNoDeviceMemory) {
  static char host[1024];
  ExpectProductRejected("A is null", [](Call& c) { c.a_data = nullptr; });
  ExpectProductRejected("bias is null", [](Call& c) { c.bias_data = nullptr; });
  ExpectProductRejected("A: ", [](Call& c) { c.a_data = host; });
  ExpectProductRejected("B: ", [](Call& c) { c.b_data = host; });
  ExpectProductRejected("D: ", [](Call& c) { c.d_data = host; });
  ExpectProductRejected("bias: ", [](Call& c) { c.bias_data = host; });
  ExpectProductRejected("workspace: ", [](Call& c) { c.workspace_data = host; });
  ExpectProductRejected("workspace is null", [](Call& c) { c.workspace_data = nullptr; });
}

TEST_F(EmulatedCublasLt, RejectsMemoryThatEndsTooSoon) {
  ExpectProductRejected("A: 640 bytes from", [](Call& c) { c.a_data = Shifted(c.a_data, 16); });
  ExpectProductRejected("B: 384 bytes from", [](Call& c) { c.b_data = Shifted(c.b_data, 16); });
  ExpectProductRejected("workspace: ", [](Call& c) { c.workspace_bytes = 1025; });
  // A batch ends behind its last matrix.
  ExpectRejected(CUBLAS_STATUS_INVALID_VALUE, "B: 386 bytes from", [](Call& c) {
    c.a.batch_count = c.b.batch_count = c.c.batch_count = c.d.batch_count = 2;
    c.a.batch_stride = 0;
    c.b.batch_stride = 1;
    c.d.batch_stride = c.c.batch_stride = 15;
  });
}

TEST_F(EmulatedCublasLt, RejectsLessAlignmentThanPromised) {
  const DeviceMemory large(4096);
  ExpectProductRejected("A: ", [&](Call& c) { c.a_data = Shifted(large.data(), 8); });
  ExpectProductRejected("no multiple of 16", [&](Call& c) { c.b_data = Shifted(large.data(), 2); });
  ExpectProductRejected("no multiple of 16",
                        [&](Call& c) { c.c_data = c.d_data = Shifted(large.data(), 30); });
  // Nothing said about the bias: as cudaMalloc aligns.
  ExpectProductRejected("bias: ", [&](Call& c) { c.bias_data = Shifted(large.data(), 128); });
  emulation::ClearErrors();
  EXPECT_EQ(Run([](Call& c) { c.bias_at_choice = reinterpret_cast<const void*>(16); },
                [&](Call& c) { c.bias_data = Shifted(large.data(), 128); }),
            CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(
      Run([](Call& c) { c.alignment = 2; }, [&](Call& c) { c.a_data = Shifted(large.data(), 6); }),
      CUBLAS_STATUS_SUCCESS);
}

TEST_F(EmulatedCublasLt, RejectsAWorkspaceThatDoesNotServe) {
  ExpectProductRejected("workspace of 179 bytes; the algorithm needs 180",
                        [](Call& c) { --c.workspace_bytes; });
  ExpectProductRejected("no multiple of 256",
                        [](Call& c) { c.workspace_data = Shifted(c.workspace_data, 128); });
  const DeviceMemory shared(1024);
  CheckCuda(cudaMemset(shared.data(), 0, 1024));
  ExpectProductRejected("the workspace lies over an operand",
                        [&](Call& c) { c.a_data = c.workspace_data = shared.data(); });
  ExpectProductRejected("D lies over A or B",
                        [&](Call& c) { c.a_data = c.c_data = c.d_data = shared.data(); });
}

TEST_F(EmulatedCublasLt, RejectsAnAlgorithmThatIsNone) {
  for (const int byte : {0, 4, 9, 28}) {
    ExpectProductRejected("no algorithm for this product", [byte](Call& c) {
      c.change_algorithm = [byte](cublasLtMatmulAlgo_t& algorithm) {
        reinterpret_cast<char*>(&algorithm)[byte] ^= 1;
      };
    });
  }
}

TEST_F(EmulatedCublasLt, RejectsAttributesOfAnotherSize) {
  cublasLtMatmulDesc_t created = nullptr;
  ASSERT_EQ(cublasLtMatmulDescCreate(&created, CUBLAS_COMPUTE_32F, CUDA_R_32F),
            CUBLAS_STATUS_SUCCESS);
  const LtMatmulDesc matmul(created);
  const int64_t value = 0;
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(created, CUBLASLT_MATMUL_DESC_TRANSA, &value, 8),
            CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(cublasLtMatmulDescSetAttribute(created, CUBLASLT_MATMUL_DESC_TRANSA, nullptr, 4),
            CUBLAS_STATUS_INVALID_VALUE);
  const LtMatrixLayout layout = Make({CUDA_R_32F, 2, 2, 2});
  EXPECT_EQ(
      cublasLtMatrixLayoutSetAttribute(layout.get(), CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &value, 8),
      CUBLAS_STATUS_INVALID_VALUE);
  cublasLtMatmulPreference_t preference = nullptr;
  ASSERT_EQ(cublasLtMatmulPreferenceCreate(&preference), CUBLAS_STATUS_SUCCESS);
  const LtPreference owner(preference);
  EXPECT_EQ(cublasLtMatmulPreferenceSetAttribute(
                preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &value, 4),
            CUBLAS_STATUS_INVALID_VALUE);
}

TEST_F(EmulatedCublasLt, RejectsAHandleThatWasNotMade) {
  cublasLtHandle_t handle = nullptr;
  ASSERT_EQ(cublasLtCreate(&handle), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(cublasLtDestroy(handle), CUBLAS_STATUS_NOT_INITIALIZED);
  handle_ = handle;
  EXPECT_EQ(Run([](Call&) {}), CUBLAS_STATUS_NOT_INITIALIZED);
}

TEST_F(EmulatedCublasLt, RejectsAHandleOfAnotherDevice) {
  emulation::Options options = emulation::GetOptions();
  options.device_count = 2;
  const emulation::ScopedOptions scope(options);
  cublasLtHandle_t other = nullptr;
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cublasLtCreate(&other), CUBLAS_STATUS_SUCCESS);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(Run([](Call&) {}), CUBLAS_STATUS_SUCCESS);
  std::swap(handle_, other);
  EXPECT_EQ(Run([](Call&) {}), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_THAT(emulation::LastReport(), HasSubstr("a handle of another device"));
  EXPECT_EQ(cublasLtDestroy(handle_), CUBLAS_STATUS_SUCCESS);
}

using EmulatedCublasLtDeathTest = EmulatedCublasLt;

TEST_F(EmulatedCublasLtDeathTest, WhatIsNotEmulatedEndsTheProgram) {
  const LtMatrixLayout layout = Make({CUDA_R_32F, 2, 2, 2});
  const int32_t order = CUBLASLT_ORDER_ROW;
  EXPECT_DEATH(cublasLtMatrixLayoutSetAttribute(layout.get(), CUBLASLT_MATRIX_LAYOUT_ORDER, &order,
                                                sizeof(order)),
               "emulated cuBLASLt: layout attribute 1");
  EXPECT_DEATH(Run([](Call& c) { c.epilogue = CUBLASLT_EPILOGUE_GELU; }), "epilogue 32");
  EXPECT_DEATH(Run([](Call& c) { c.transpose_a = CUBLAS_OP_C; }), "operation 2");
  EXPECT_DEATH(Run([](Call& c) { c.compute = CUBLAS_COMPUTE_64F; }), "compute type");
  EXPECT_DEATH(cublasLtMatmulDescDestroy(reinterpret_cast<cublasLtMatmulDesc_t>(layout.get())),
               "a descriptor of another kind");
}

}  // namespace
}  // namespace halftone::testing
