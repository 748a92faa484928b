#include "halftone/kernels/cuda/cudnn/conv_run.h"

#include "halftone/core/align.h"
#include "halftone/kernels/cuda/device/library_operands.h"
#include "halftone/kernels/cuda/runtime/status.h"

namespace halftone::cuda {
namespace {

constexpr int64_t kConvAlignment = 256;  // as memory of cudaMalloc

int64_t ElementBytes(cudnnDataType_t dtype) { return dtype == CUDNN_DATA_FLOAT ? 4 : 2; }

void* Offset(const void* p, int64_t bytes) {
  return const_cast<char*>(static_cast<const char*>(p) + bytes);
}

DType DTypeOf(cudnnDataType_t dtype) {
  return dtype == CUDNN_DATA_HALF ? DType::kF16 : DType::kBF16;
}

}  // namespace

CudnnConv ConvRun::Widened(const CudnnConv& conv, int64_t limit) {
  CudnnConv wide = conv;
  const int64_t images = conv.x.dims[0];
  const int64_t image_bytes = (conv.x.elements() + conv.y.elements()) / images * 4;
  int64_t steps = 1;
  while (steps < images && (images % steps != 0 || images / steps * image_bytes > limit)) {
    ++steps;
  }
  for (CudnnTensor* t : {&wide.x, &wide.w, &wide.y}) t->dtype = CUDNN_DATA_FLOAT;
  wide.x.dims[0] = wide.y.dims[0] = images / steps;
  wide.accumulate = steps > 1;
  wide.tf32_is_exact = true;
  return wide;
}

ConvRun::ConvRun(const ConvRunShape& shape, CudnnPlan plan, CudnnHandle* handle)
    : shape_(shape), plan_(std::move(plan)), handle_(handle) {
  const CudnnConv& conv = graph().conv();
  widened_ = conv.x.dtype != shape.conv.x.dtype;
  steps_ = shape.conv.x.dims[0] / conv.x.dims[0];
  if (shape.reorder_filter) filter_bytes_ = AlignUp(conv.w.bytes(), kConvAlignment);
  if (widened_) {
    widened_x_bytes_ = AlignUp(conv.x.bytes(), kConvAlignment);
    widened_y_bytes_ = AlignUp(conv.y.bytes(), kConvAlignment);
  }
  workspace_bytes_ = filter_bytes_ + widened_x_bytes_ + widened_y_bytes_ + plan_.workspace_bytes;
  if (workspace_bytes_ > 0) workspace_bytes_ += kConvAlignment - 1;
  packs_.resize(steps_);
}

absl::Status ConvRun::Launch(const ConvPointers& pointers, void* workspace, cudaStream_t stream) {
  void* const aligned = AlignUp(workspace, kConvAlignment);
  const CudnnTensor& w = graph().conv().w;
  const int64_t window = w.elements() / (w.dims[0] * w.dims[1]);
  const int bytes = static_cast<int>(ElementBytes(w.dtype));
  const bool makes_w = shape_.conv.product == ConvProduct::kGradWeight;
  ConvPointers inner = pointers;
  if (shape_.reorder_filter) inner.w = aligned;
  if (shape_.reorder_filter && !makes_w) {
    HT_CUDA_RETURN_IF_ERROR(LaunchSwapFilterAxes(pointers.w, w.dims[0], w.dims[1], window, bytes,
                                                 Offset(inner.w, 0), stream));
  }
  if (graph().conv().accumulate) {
    HT_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(Offset(inner.w, 0), 0, w.bytes(), stream));
  }
  void* const of_steps = Offset(aligned, filter_bytes_);
  for (int64_t step = 0; step < steps_; ++step) {
    ConvPointers of_step = inner;
    of_step.x = Offset(inner.x, step * (shape_.conv.x.bytes() / steps_));
    of_step.y = Offset(inner.y, step * (shape_.conv.y.bytes() / steps_));
    HT_RETURN_IF_ERROR(ExecuteStep(step, of_step, of_steps, stream));
  }
  if (shape_.reorder_filter && makes_w) {
    HT_CUDA_RETURN_IF_ERROR(LaunchSwapFilterAxes(inner.w, w.dims[0], window, w.dims[1], bytes,
                                                 Offset(pointers.w, 0), stream));
  }
  return absl::OkStatus();
}

absl::Status ConvRun::ExecuteStep(int64_t step, const ConvPointers& p, void* workspace,
                                  cudaStream_t stream) {
  const CudnnConv& conv = graph().conv();
  ConvPointers inner = p;
  if (widened_) {
    auto* const x = static_cast<float*>(workspace);
    auto* const y = static_cast<float*>(Offset(workspace, widened_x_bytes_));
    const DType from = DTypeOf(shape_.conv.x.dtype);
    HT_CUDA_RETURN_IF_ERROR(LaunchWiden(p.x, from, conv.x.elements(), x, stream));
    HT_CUDA_RETURN_IF_ERROR(LaunchWiden(p.y, from, conv.y.elements(), y, stream));
    inner.x = x;
    inner.y = y;
    workspace = Offset(workspace, widened_x_bytes_ + widened_y_bytes_);
  }
  if (plan_.workspace_bytes == 0) workspace = nullptr;
  std::vector<void*> pointers = {Offset(inner.x, 0), Offset(inner.w, 0), Offset(inner.y, 0)};
  if (conv.has_bias) pointers.push_back(Offset(inner.bias, 0));
  pointers.push_back(workspace);
  Pack& pack = packs_[step];
  if (pack.pointers != pointers) {
    const std::vector<int64_t> uids = graph().uids();
    CudnnDescriptor made(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, "variant pack");
    made.Set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR,
             static_cast<int64_t>(uids.size()), pointers.data())
        .Set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, uids)
        .Set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace);
    HT_RETURN_IF_ERROR(made.Finalize());
    pack.descriptor = std::move(made);
    pack.pointers = std::move(pointers);
  }
  return handle_->Execute(plan_.plan, pack.descriptor, stream);
}

}  // namespace halftone::cuda
