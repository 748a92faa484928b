#include "halftone/kernels/cuda/cudnn/graph.h"

namespace halftone::cuda {

std::string JoinInts(const std::vector<int64_t>& values) {
  std::string text;
  for (int64_t v : values) text += Concat(text.empty() ? "" : ",", v);
  return text;
}

int64_t CudnnTensor::elements() const {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  return count;
}

int64_t CudnnTensor::bytes() const {
  if (elements() == 0) return 0;
  int64_t last = 0;
  for (size_t i = 0; i < dims.size(); ++i) last += (dims[i] - 1) * strides[i];
  return (last + 1) * (dtype == CUDNN_DATA_FLOAT ? 4 : 2);
}

std::string CudnnTensor::ToString() const {
  return Concat(static_cast<int>(dtype), "[", JoinInts(dims), "](", JoinInts(strides), ")");
}

absl::StatusOr<CudnnDescriptor> MakeCudnnTensor(const CudnnTensor& t, int64_t uid,
                                                const std::string& what, TensorKind kind) {
  CudnnDescriptor d(CUDNN_BACKEND_TENSOR_DESCRIPTOR, what);
  d.Set(CUDNN_ATTR_TENSOR_DATA_TYPE, t.dtype)
      .Set(CUDNN_ATTR_TENSOR_DIMENSIONS, t.dims)
      .Set(CUDNN_ATTR_TENSOR_STRIDES, t.strides)
      .Set(CUDNN_ATTR_TENSOR_UNIQUE_ID, uid)
      .Set(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, kTensorAlignment);
  if (kind == TensorKind::kVirtual) d.Set(CUDNN_ATTR_TENSOR_IS_VIRTUAL, true);
  if (kind == TensorKind::kByValue) d.Set(CUDNN_ATTR_TENSOR_IS_BY_VALUE, true);
  HT_RETURN_IF_ERROR(d.Finalize());
  return d;
}

absl::Status CudnnGraph::FinishGraph(const CudnnTarget& target) {
  graph_ = CudnnDescriptor(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR, "operation graph");
  graph_.Set(CUDNN_ATTR_OPERATIONGRAPH_OPS, ops_);
  if (target.handle != nullptr) {
    graph_.Set(CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &target.handle);
  }
  return graph_.Finalize();
}

}  // namespace halftone::cuda
