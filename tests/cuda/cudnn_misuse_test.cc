// Misuse of cuDNN's API is refused: by the emulated library as by the real one (9.19), on which the
// expected statuses were found. All but the executions run without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <utility>

#include "halftone/tests/cuda/cudnn_graphs.h"
#include "halftone/tests/cuda/device_memory.h"
#if defined(HALFTONE_CUDA_EMULATED)
#include "halftone/tests/cuda_emulation/control.h"
#endif

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;

constexpr const char* kBad = "CUDNN_STATUS_BAD_PARAM";

void ExpectRefused(const absl::Status& status, const char* expected = kBad) {
  EXPECT_FALSE(status.ok());
  EXPECT_THAT(Message(status), HasSubstr(expected));
}

CudnnDescriptor EmptyTensor() { return {CUDNN_BACKEND_TENSOR_DESCRIPTOR, "t"}; }

TEST(CudnnMisuseTest, SetAttribute) {
  const std::array<int32_t, 4> ints = {1, 2, 3, 4};
  ExpectRefused(
      EmptyTensor().Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT32, 4, ints.data()).status(),
      "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE");
  ExpectRefused(EmptyTensor().Set(CUDNN_ATTR_TENSOR_DIMENSIONS, Ints{}).status());
  ExpectRefused(
      EmptyTensor().Set(CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, nullptr).status());
  ExpectRefused(EmptyTensor().Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, Ints{1, 2}).status());
  ExpectRefused(EmptyTensor().Set(CUDNN_ATTR_CONVOLUTION_DILATIONS, Ints{1, 1}).status());
  // Unnamed, but within what the enumeration may hold.
  ExpectRefused(
      EmptyTensor().Set(static_cast<cudnnBackendAttributeName_t>(4000), int64_t{1}).status());
  ExpectRefused(
      Final(TensorOf({1, 2, 3, 4}, 1)).Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{2}).status());
  CudnnDescriptor op(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "op");
  ExpectRefused(op.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, int64_t{1}).status());
}

TEST(CudnnMisuseTest, GetAttribute) {
  ExpectRefused(EmptyTensor().GetInt(CUDNN_ATTR_TENSOR_UNIQUE_ID).status(),
                "CUDNN_STATUS_NOT_INITIALIZED");
  const CudnnDescriptor tensor = Final(TensorOf({1, 2, 3, 4}, 5));
  ASSERT_TRUE(tensor.GetInt(CUDNN_ATTR_TENSOR_UNIQUE_ID).ok());
  EXPECT_EQ(*tensor.GetInt(CUDNN_ATTR_TENSOR_UNIQUE_ID), 5);
  ExpectRefused(tensor.Get<int32_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT32).status(),
                "CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE");
  ExpectRefused(tensor.GetInt(CUDNN_ATTR_ENGINE_GLOBAL_INDEX).status());
}

TEST(CudnnMisuseTest, Descriptor) {
  const CudnnDescriptor unknown(static_cast<cudnnBackendDescriptorType_t>(63), "x");
  ExpectRefused(unknown.status(), "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED");
  EXPECT_EQ(unknown.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(cudnnBackendFinalize(nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  EXPECT_EQ(cudnnBackendDestroyDescriptor(nullptr), CUDNN_STATUS_BAD_PARAM_NULL_POINTER);
  CudnnDescriptor tensor = Final(TensorOf({1, 2, 3, 4}, 1));
  ExpectRefused(tensor.Finalize());
}

TEST(CudnnMisuseTest, Tensor) {
  ExpectRefused(EmptyTensor().Finalize());
  const Ints dims = {1, 2, 3, 4};
  ExpectRefused(TensorOf(dims, Ints{24, 1, 8}, 1).Finalize());
  ExpectRefused(TensorOf({1, -2, 3, 4}, Ints{24, 1, 8, 2}, 1).Finalize());
  ExpectRefused(TensorOf(dims, Ints{24, -1, 8, 2}, 1).Finalize());
  for (const int64_t alignment : {0, 2, 3}) {
    ExpectRefused(TensorOf(dims, Ints{24, 1, 8, 2}, 1, alignment).Finalize());
  }
  CudnnDescriptor bare = EmptyTensor();
  bare.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_DATA_FLOAT)
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{1})
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16});
  ExpectRefused(bare.Set(CUDNN_ATTR_TENSOR_STRIDES, Ints{24, 1, 8, 2}).Finalize());
}

TEST(CudnnMisuseTest, Convolution) {
  EXPECT_TRUE(ConvolutionOf().Finalize().ok());
  ExpectRefused(CudnnDescriptor(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR, "c").Finalize());
  ExpectRefused(ConvolutionOf({-1, 1}).Finalize());
  ExpectRefused(ConvolutionOf({1, 1, 1}).Finalize());
  ExpectRefused(ConvolutionOf({1, 1}, {0, 1}).Finalize());
  ExpectRefused(ConvolutionOf({1, 1}, {1, 1}, {0, 1}).Finalize());
  ExpectRefused(ConvolutionOf({1, 1}, {1, 1}, {1, 1}, 3).Finalize());
  ExpectRefused(ConvolutionOf({1, 1}, {1, 1}, {1, 1}, 0).Finalize());
}

class CudnnOperation : public ::testing::Test {
 protected:
  const CudnnDescriptor x_ = Final(TensorOf({2, 4, 6, 5}, 1));
  const CudnnDescriptor w_ = Final(TensorOf({8, 4, 3, 3}, 2));
  const CudnnDescriptor y_ = Final(TensorOf({2, 8, 6, 5}, 3));
  const CudnnDescriptor convolution_ = Final(ConvolutionOf());
};

using CudnnOperationMisuseTest = CudnnOperation;

TEST_F(CudnnOperationMisuseTest, ExtentsThatDoNotFit) {
  EXPECT_TRUE(ForwardOf(x_, w_, y_, convolution_).Finalize().ok());
  for (const Ints& y : {Ints{2, 8, 6, 6}, Ints{2, 7, 6, 5}, Ints{3, 8, 6, 5}}) {
    ExpectRefused(ForwardOf(x_, w_, Final(TensorOf(y, 3)), convolution_).Finalize());
  }
  for (const Ints& w : {Ints{8, 3, 3, 3}, Ints{7, 2, 3, 3}, Ints{8, 4, 9, 9}}) {
    ExpectRefused(ForwardOf(x_, Final(TensorOf(w, 2)), y_, convolution_).Finalize());
  }
  ExpectRefused(
      ForwardOf(Final(TensorOf({2, 4, 6}, Ints{24, 1, 4}, 1)), w_, y_, convolution_).Finalize());
}

TEST_F(CudnnOperationMisuseTest, OverlappingElements) {
  const Ints dims = {2, 4, 6, 5};
  const CudnnDescriptor x = Final(TensorOf(dims, Ints{120, 1, 4, 20}, 1));
  ExpectRefused(ForwardOf(x, w_, y_, convolution_).Finalize());
}

TEST_F(CudnnOperationMisuseTest, MissingOperands) {
  CudnnDescriptor none(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "op");
  ExpectRefused(none.Finalize());
  ExpectRefused(ForwardOf(TensorOf({2, 4, 6, 5}, 1), w_, y_, convolution_).Finalize());
  CudnnDescriptor no_w(CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR, "op");
  no_w.Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x_)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y_)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, convolution_)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, 1.0F)
      .Set(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, 0.0F);
  ExpectRefused(no_w.Finalize());
  CudnnDescriptor bias(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR, "add");
  ExpectRefused(bias.Set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x_).Finalize());
}

// Parts of attention's graphs.
TEST_F(CudnnOperationMisuseTest, ShapesOfMatrices) {
  const auto matrix = [](const Ints& dims, int64_t uid) {
    const Ints strides = {dims[1] * dims[2] * dims[3], dims[2] * dims[3], dims[3], 1};
    return Final(TensorOf(dims, strides, uid, 16, /*is_virtual=*/true));
  };
  const CudnnDescriptor square = matrix({1, 2, 8, 8}, 11);
  CudnnDescriptor product(CUDNN_BACKEND_MATMUL_DESCRIPTOR, "product");
  product = Final(std::move(product.Set(CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_DATA_FLOAT)));
  const auto multiplied = [&](const CudnnDescriptor& b, const CudnnDescriptor& result) {
    CudnnDescriptor op(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR, "product");
    op.Set(CUDNN_ATTR_OPERATION_MATMUL_ADESC, square)
        .Set(CUDNN_ATTR_OPERATION_MATMUL_BDESC, b)
        .Set(CUDNN_ATTR_OPERATION_MATMUL_CDESC, result)
        .Set(CUDNN_ATTR_OPERATION_MATMUL_DESC, product);
    return op.Finalize();
  };
  EXPECT_TRUE(multiplied(matrix({1, 2, 8, 8}, 12), matrix({1, 2, 8, 8}, 13)).ok());
  ExpectRefused(multiplied(matrix({1, 2, 16, 8}, 12), matrix({1, 2, 8, 8}, 13)));
  ExpectRefused(multiplied(matrix({1, 2, 8, 8}, 12), matrix({1, 2, 8, 16}, 13)));

  CudnnDescriptor sum(CUDNN_BACKEND_REDUCTION_DESCRIPTOR, "sum");
  const cudnnReduceTensorOp_t add = CUDNN_REDUCE_TENSOR_ADD;
  sum = Final(
      std::move(sum.Set(CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &add)
                    .Set(CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_DATA_FLOAT)));
  const auto reduced = [&](const CudnnDescriptor& result) {
    CudnnDescriptor op(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR, "sum");
    op.Set(CUDNN_ATTR_OPERATION_REDUCTION_XDESC, square)
        .Set(CUDNN_ATTR_OPERATION_REDUCTION_YDESC, result)
        .Set(CUDNN_ATTR_OPERATION_REDUCTION_DESC, sum);
    return op.Finalize();
  };
  EXPECT_TRUE(reduced(matrix({1, 2, 8, 1}, 12)).ok());
  ExpectRefused(reduced(matrix({1, 2, 8, 3}, 12)));

  CudnnDescriptor reshape(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR, "reshape");
  reshape.Set(CUDNN_ATTR_OPERATION_RESHAPE_XDESC, square)
      .Set(CUDNN_ATTR_OPERATION_RESHAPE_YDESC, matrix({1, 2, 8, 4}, 12));
  ExpectRefused(reshape.Finalize());
}

TEST_F(CudnnOperationMisuseTest, Graph) {
  CudnnDescriptor none(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph");
  ExpectRefused(none.Finalize());
  ExpectRefused(GraphOf(ForwardOf(x_, w_, y_, convolution_)).Finalize(),
                "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED");
  std::vector<CudnnDescriptor> twice;
  for (int i = 0; i < 2; ++i) twice.push_back(Final(ForwardOf(x_, w_, y_, convolution_)));
  CudnnDescriptor graph(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "graph");
  ExpectRefused(graph.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, twice).Finalize());
}

TEST_F(CudnnOperationMisuseTest, EngineAndPlan) {
  const CudnnDescriptor op = Final(ForwardOf(x_, w_, y_, convolution_));
  const CudnnDescriptor graph = Final(GraphOf(op));
  const auto engine = [&graph](int64_t index) {
    CudnnDescriptor d(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
    d.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph)
        .Set(CUDNN_ATTR_ENGINE_DEVICEPROP, TestDevice())
        .Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, index);
    return d;
  };
  for (const int64_t index : {-1, 9999}) {
    const absl::Status status = engine(index).Finalize();
    ExpectRefused(status, "CUDNN_STATUS_NOT_SUPPORTED");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  }
  CudnnDescriptor no_graph(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
  ExpectRefused(no_graph.Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, int64_t{0}).Finalize(),
                "CUDNN_STATUS_BAD_PARAM_NULL_POINTER");
  CudnnDescriptor heuristic(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR, "heuristic");
  ExpectRefused(heuristic.Finalize());

  const CudnnDescriptor first = Final(engine(0));
  CudnnDescriptor knob(CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, "knob");
  const cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_TILE_SIZE;
  knob.Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, CUDNN_TYPE_KNOB_TYPE, 1, &type)
      .Set(CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, int64_t{7});
  const CudnnDescriptor final_knob = Final(std::move(knob));
  CudnnDescriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "configuration");
  config.Set(CUDNN_ATTR_ENGINECFG_ENGINE, first).Set(CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, final_knob);
  ExpectRefused(config.Finalize(), "CUDNN_STATUS_NOT_SUPPORTED");
  CudnnDescriptor plan(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan");
  ExpectRefused(plan.Finalize(), "CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED");
}

TEST(CudnnMisuseTest, VariantPack) {
  std::array<void*, 3> pointers{};
  CudnnDescriptor counts(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "pack");
  counts.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, 3, pointers.data())
      .Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Ints{1, 2});
  ExpectRefused(counts.Finalize());
  CudnnDescriptor no_pointers(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "pack");
  ExpectRefused(no_pointers.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, Ints{1, 2}).Finalize());
  EXPECT_EQ(cudnnBackendExecute(nullptr, nullptr, nullptr), CUDNN_STATUS_BAD_PARAM);
}

#if defined(HALFTONE_CUDA_EMULATED)

// What the library takes in silence, or crashes on, the emulated one refuses.
TEST_F(CudnnOperationMisuseTest, WhatTheLibraryDoesNotCheck) {
  CudnnDescriptor no_type = EmptyTensor();
  no_type.Set(CUDNN_ATTR_TENSOR_DIMENSIONS, Ints{1, 2, 3, 4})
      .Set(CUDNN_ATTR_TENSOR_STRIDES, Ints{24, 1, 8, 2})
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, int64_t{1})
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, int64_t{16});
  ExpectRefused(no_type.Finalize());
  ExpectRefused(ForwardOf(convolution_, w_, y_, convolution_).Finalize());
  ExpectRefused(GraphOf(x_).Finalize());
  const CudnnDescriptor same_id = Final(TensorOf({2, 8, 6, 5}, 1));
  ExpectRefused(GraphOf(Final(ForwardOf(x_, w_, same_id, convolution_))).Finalize());
  const Ints dims = {2, 8, 6, 5};
  const CudnnDescriptor hidden = Final(TensorOf(dims, ChannelsLast(dims), 3, 16, true));
  ExpectRefused(GraphOf(Final(ForwardOf(x_, w_, hidden, convolution_))).Finalize());
}

// One emulated engine, with a workspace, and what may be wrong when it is run.
class CudnnExecutionMisuseTest : public CudnnOperation {
 protected:
  CudnnExecutionMisuseTest() {
    EXPECT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
    CudnnDescriptor engine(CUDNN_BACKEND_ENGINE_DESCRIPTOR, "engine");
    engine.Set(CUDNN_ATTR_ENGINE_OPERATION_GRAPH, graph_)
        .Set(CUDNN_ATTR_ENGINE_GLOBAL_INDEX, int64_t{1});
    CudnnDescriptor config(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, "configuration");
    config.Set(CUDNN_ATTR_ENGINECFG_ENGINE, Final(std::move(engine)));
    plan_ = CudnnDescriptor(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR, "plan");
    plan_.Set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle_)
        .Set(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, Final(std::move(config)));
    EXPECT_TRUE(plan_.Finalize().ok());
    workspace_bytes_ = *plan_.GetInt(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE);
  }
  ~CudnnExecutionMisuseTest() override { EXPECT_EQ(cudnnDestroy(handle_), CUDNN_STATUS_SUCCESS); }

  cudnnStatus_t Execute(const Ints& uids, std::vector<void*> pointers, void* workspace) {
    CudnnDescriptor pack(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "pack");
    pack.Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids)
        .Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
             static_cast<int64_t>(pointers.size()), pointers.data())
        .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    EXPECT_TRUE(pack.Finalize().ok());
    return cudnnBackendExecute(handle_, plan_.get(), pack.get());
  }

  const CudnnDescriptor op_ = Final(ForwardOf(x_, w_, y_, convolution_));
  const CudnnDescriptor graph_ = Final(GraphOf(op_));
  cudnnHandle_t handle_ = nullptr;
  CudnnDescriptor plan_;
  int64_t workspace_bytes_ = 0;
};

TEST_F(CudnnExecutionMisuseTest, IsRefused) {
  const DeviceMemory x(2 * 4 * 30 * 4), w(8 * 4 * 9 * 4), y(2 * 8 * 30 * 4);
  const DeviceMemory workspace(workspace_bytes_), small(workspace_bytes_ - 1);
  std::vector<float> host(2 * 8 * 30);
  const Ints uids = {1, 2, 3};
  EXPECT_EQ(Execute(uids, {x.data(), w.data(), y.data()}, workspace.data()), CUDNN_STATUS_SUCCESS);
  EXPECT_EQ(Execute(uids, {x.data(), w.data(), y.data()}, nullptr), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Execute(uids, {x.data(), w.data(), y.data()}, small.data()), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Execute(uids, {x.data(), w.data(), host.data()}, workspace.data()),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Execute(uids, {x.data(), w.data(), nullptr}, workspace.data()), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Execute(uids, {x.data(), y.data(), w.data()}, workspace.data()),
            CUDNN_STATUS_BAD_PARAM);  // w is too small for y
  EXPECT_EQ(Execute({1, 2}, {x.data(), w.data()}, workspace.data()), CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Execute({1, 2, 7}, {x.data(), w.data(), y.data()}, workspace.data()),
            CUDNN_STATUS_BAD_PARAM);
  EXPECT_EQ(Execute(uids, {static_cast<char*>(x.data()) + 4, w.data(), y.data()}, workspace.data()),
            CUDNN_STATUS_BAD_PARAM_MISALIGNED_POINTER);
}

TEST_F(CudnnExecutionMisuseTest, HandleOfAnotherDevice) {
  emulation::Options options = emulation::GetOptions();
  options.device_count = 2;
  const emulation::ScopedOptions scope(options);
  const DeviceMemory x(2 * 4 * 30 * 4), w(8 * 4 * 9 * 4), y(2 * 8 * 30 * 4);
  const DeviceMemory workspace(workspace_bytes_);
  const std::vector<void*> operands = {x.data(), w.data(), y.data()};
  const cudnnHandle_t before = std::exchange(handle_, nullptr);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  ASSERT_EQ(cudnnCreate(&handle_), CUDNN_STATUS_SUCCESS);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(Execute({1, 2, 3}, operands, workspace.data()), CUDNN_STATUS_BAD_PARAM);
  EXPECT_THAT(emulation::LastReport(), HasSubstr("a handle of device 1 on device 0"));
  EXPECT_EQ(cudnnDestroy(handle_), CUDNN_STATUS_SUCCESS);
  handle_ = before;
  EXPECT_EQ(Execute({1, 2, 3}, operands, workspace.data()), CUDNN_STATUS_SUCCESS);
}

#endif

}  // namespace
}  // namespace halftone::testing
