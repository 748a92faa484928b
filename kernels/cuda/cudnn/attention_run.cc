#include "halftone/kernels/cuda/cudnn/attention_run.h"

#include "halftone/core/align.h"

namespace halftone::cuda {
namespace {

constexpr int64_t kRunAlignment = 256;

// Bytes between a step's tensor and the next's.
int64_t StepBytes(const CudnnTensor& t, int64_t steps) {
  return t.dims[0] / steps * t.strides[0] * (t.dtype == CUDNN_DATA_FLOAT ? 4 : 2);
}
int64_t StepBytesOfRows(const CudnnAttention& a, int64_t steps) { return a.rows() / steps * 4; }

bool StepsAreAligned(const CudnnAttention& a, int64_t steps) {
  bool aligned = StepBytesOfRows(a, steps) % kTensorAlignment == 0;
  for (const CudnnTensor* t : a.tensors()) {
    aligned = aligned && StepBytes(*t, steps) % kTensorAlignment == 0;
  }
  return aligned;
}

// Null stays null.
template <typename T>
T* Advanced(T* p, int64_t bytes) {
  if (p == nullptr) return p;
  return const_cast<char*>(static_cast<const char*>(p)) + bytes;
}

AttentionPointers PointersOfStep(const AttentionPointers& p, const CudnnAttention& a, int64_t steps,
                                 int64_t step) {
  const int64_t q = step * StepBytes(a.q, steps), k = step * StepBytes(a.k, steps);
  const int64_t v = step * StepBytes(a.v, steps), y = step * StepBytes(a.y, steps);
  const int64_t rows = step * StepBytesOfRows(a, steps);
  int64_t dq = 0, dk = 0, dv = 0;
  if (a.gradient) {
    dq = step * StepBytes(a.dq, steps);
    dk = step * StepBytes(a.dk, steps);
    dv = step * StepBytes(a.dv, steps);
  }
  return {.q = Advanced(p.q, q),
          .k = Advanced(p.k, k),
          .v = Advanced(p.v, v),
          .y = Advanced(p.y, y),
          .max = Advanced(p.max, rows),
          .sum = Advanced(p.sum, rows),
          .log_sum_exp = Advanced(p.log_sum_exp, rows),
          .dy = Advanced(p.dy, y),
          .delta = Advanced(p.delta, rows),
          .dq = Advanced(p.dq, dq),
          .dk = Advanced(p.dk, dk),
          .dv = Advanced(p.dv, dv)};
}

}  // namespace

CudnnAttention AttentionRun::OneStep(const CudnnAttention& whole, int64_t limit) {
  if (!whole.gradient) return whole;
  const int64_t batch = whole.q.dims[0];
  const int64_t of_one =
      whole.q.dims[1] * AlignUp(whole.q.dims[2], 64) * AlignUp(whole.k.dims[2], 128) * 2;
  int64_t steps = 1;
  while (steps < batch && (batch % steps != 0 || batch / steps * of_one > limit)) ++steps;
  if (!StepsAreAligned(whole, steps)) return whole;
  CudnnAttention step = whole;
  for (CudnnTensor* t : step.tensors()) t->dims[0] = batch / steps;
  return step;
}

AttentionRun::AttentionRun(const CudnnAttention& whole, CudnnPlan plan, CudnnHandle* handle)
    : whole_(whole), plan_(std::move(plan)), handle_(handle) {
  workspace_bytes_ = AlignUp(plan_.workspace_bytes, kRunAlignment);
  const auto& graph = static_cast<const CudnnAttentionGraph&>(*plan_.graph);
  packs_.resize(whole.q.dims[0] / graph.attention().q.dims[0]);
}

absl::Status AttentionRun::Launch(const AttentionPointers& pointers, void* workspace,
                                  cudaStream_t stream) {
  const auto& graph = static_cast<const CudnnAttentionGraph&>(*plan_.graph);
  const auto steps = static_cast<int64_t>(packs_.size());
  if (plan_.workspace_bytes == 0) workspace = nullptr;
  for (int64_t step = 0; step < steps; ++step) {
    const AttentionPointers of_step = PointersOfStep(pointers, whole_, steps, step);
    Pack& pack = packs_[step];
    if (pack.pointers != of_step || pack.workspace != workspace) {
      HT_ASSIGN_OR_RETURN(pack.descriptor, graph.Pack(of_step, workspace));
      pack.pointers = of_step;
      pack.workspace = workspace;
    }
    HT_RETURN_IF_ERROR(handle_->Execute(plan_.plan, pack.descriptor, stream));
  }
  return absl::OkStatus();
}

}  // namespace halftone::cuda
