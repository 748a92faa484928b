// scaled_dot_product_attention and its gradient through cuDNN's fused engines: operands of 16 bit,
// without a mask and without dropout, whose positions the library draws from a stream of its own.
//
// Scores, softmax and sums are f32; weights, and the gradient of scores, are rounded to the operands'
// dtype before tensor cores multiply them. The gradient's sums have a fixed order. The stats are the
// op's own, so that forward and gradient may come from two candidates.
//
// As with convolutions, no plan is taken that was not run once: one that fails is passed over for the
// next or, if there is none, leaves the node to our own kernel.
#include <algorithm>
#include <optional>

#include "halftone/core/align.h"
#include "halftone/kernels/cuda/cudnn/attention_run.h"
#include "halftone/kernels/cuda/ops/attention_stats.h"
#include "halftone/kernels/cuda/runtime/autotune.h"
#include "halftone/kernels/cuda/runtime/autotune_cache.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/supports.h"

namespace halftone::kernels {
namespace {

using cuda::AttentionPointers;
using cuda::AttentionRun;
using cuda::CudnnAttention;
using cuda::CudnnPlan;
using cuda::CudnnTensor;

constexpr size_t kTriedAttentionPlans = 10;
constexpr int64_t kWorkspaceAlignment = 256;
// Earlier ones mask by the lowest number, not -inf, and want the gradient's odd lengths padded.
constexpr size_t kOldestAttention = 91600;

// Inputs of the gradient.
enum GradPort { kYPort = 3, kStatsPort, kDyPort, kGradMaskPort };
constexpr int kMaskPort = 3;

// Of [..., heads, rows, columns] as [batch, heads, rows, columns]; the one place that says how
// operands lie.
CudnnTensor OperandOf(const ir::ValueType& type) {
  const Shape& s = type.shape;
  const int rank = s.rank();
  CudnnTensor t;
  t.dtype = type.dtype == DType::kF16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
  int64_t batch = 1;
  for (int axis = 0; axis + 3 < rank; ++axis) batch *= s[axis];
  const int64_t heads = rank > 2 ? s[rank - 3] : 1, rows = s[rank - 2], columns = s[rank - 1];
  t.dims = {batch, heads, rows, columns};
  t.strides = {heads * rows * columns, rows * columns, columns, 1};
  return t;
}

CudnnAttention AttentionOf(const ir::Node& node, bool gradient) {
  CudnnAttention a;
  a.gradient = gradient;
  a.q = OperandOf(node.input_type(0));
  a.k = OperandOf(node.input_type(1));
  a.v = OperandOf(node.input_type(2));
  a.y = OperandOf(gradient ? node.input_type(kYPort) : node.output_type());
  a.scale = static_cast<float>(node.attrs().GetFloat("scale"));
  a.causal = node.attrs().GetBool("is_causal");
  return a;
}

absl::Status SupportsAttention(const ir::Node& node, bool gradient) {
  HT_RETURN_IF_ERROR(PlainInputs(node));
  if (node.num_inputs() > (gradient ? kGradMaskPort : kMaskPort)) return Unimplemented("a mask");
  if (node.attrs().GetFloat("dropout_p") > 0) return Unimplemented("dropout");
  if (cudnnGetVersion() < kOldestAttention) {
    return Unimplemented("cuDNN ", cudnnGetVersion(), "; expected ", kOldestAttention, " or newer");
  }
  const CudnnAttention a = AttentionOf(node, gradient);
  for (const CudnnTensor* t : {&a.q, &a.k, &a.v}) {
    if (t->elements() == 0) return Unimplemented("nothing to do");
    if (t->dims[3] % 8 != 0 || t->dims[3] > 256) {
      return Unimplemented(t->dims[3], " columns; expected a multiple of 8, at most 256");
    }
  }
  const int64_t rows = a.q.dims[2], keys = a.k.dims[2];
  // The library aligns a diagonal to the first row and column, as the op does, and was seen to accept
  // other lengths; squares are what it is used for.
  if (a.causal && rows != keys) {
    return Unimplemented("causal with ", rows, " queries and ", keys, " keys");
  }
  if (gradient && rows == 1 && keys == 1) return Unimplemented("one query and one key");
  return absl::OkStatus();
}

// The runs to choose from, at most `limit`, best first as far as the library knows.
absl::StatusOr<std::vector<AttentionRun>> FindAttentionRuns(const CudnnAttention& attention,
                                                            cuda::CudnnHandle* handle,
                                                            size_t limit) {
  const auto lock = handle->Lock();
  const cuda::CudnnTarget target{handle->get(), nullptr};
  HT_ASSIGN_OR_RETURN(const auto graph,
                      cuda::CudnnAttentionGraph::Make(AttentionRun::OneStep(attention), target));
  HT_ASSIGN_OR_RETURN(std::vector<CudnnPlan> plans, cuda::FindCudnnPlans(graph, target, limit));
  std::vector<AttentionRun> runs;
  for (CudnnPlan& plan : plans) runs.emplace_back(attention, std::move(plan), handle);
  return runs;
}

// Nothing for what is no record of the cache, or none that holds for this attention on this device.
std::optional<AttentionRun> AttentionRunOf(const CudnnAttention& attention,
                                           cuda::CudnnHandle* handle, const std::string& record) {
  const auto choice = cuda::CudnnChoice::Parse(record);
  if (!choice.ok()) return std::nullopt;
  const auto lock = handle->Lock();
  const cuda::CudnnTarget target{handle->get(), nullptr};
  const auto graph = cuda::CudnnAttentionGraph::Make(AttentionRun::OneStep(attention), target);
  if (!graph.ok()) return std::nullopt;
  absl::StatusOr<CudnnPlan> plan = cuda::RebuildCudnnPlan(*graph, target, *choice);
  if (!plan.ok()) return std::nullopt;
  return AttentionRun(attention, *std::move(plan), handle);
}

// What the kernel has in its workspace before that of the run: a number or two a row.
int64_t RowBytes(const CudnnAttention& a) { return AlignUp(a.rows() * 4, kWorkspaceAlignment); }
int64_t OwnBytes(const CudnnAttention& a) { return RowBytes(a) * (a.gradient ? 2 : 1); }

// The fastest; of one, whether it runs. Error: ResourceExhausted if there is no memory to find out.
absl::StatusOr<int> MeasureAttention(const CudnnAttention& a, std::vector<AttentionRun>& runs) {
  int64_t bytes = 0;
  for (const AttentionRun& run : runs) bytes = std::max(bytes, run.workspace_bytes());
  // As many of each kind as the gradient needs.
  const auto of = [](const CudnnTensor& t) { return AlignUp(t.bytes(), kWorkspaceAlignment); };
  const int64_t q = of(a.q), k = of(a.k), v = of(a.v), y = of(a.y), row = RowBytes(a);
  HT_ASSIGN_OR_RETURN(const auto operands,
                      cuda::ScratchMemory::Allocate(2 * (q + k + v + y + row)));
  HT_ASSIGN_OR_RETURN(const auto workspace, cuda::ScratchMemory::Allocate(bytes));
  auto* next = static_cast<char*>(operands.data());
  const auto take = [&next](int64_t size) -> void* { return std::exchange(next, next + size); };
  AttentionPointers p;
  p.q = take(q);
  p.k = take(k);
  p.v = take(v);
  p.y = take(y);
  void *const first = take(row), *const second = take(row);
  p.max = first;
  p.sum = second;
  p.log_sum_exp = first;
  p.delta = second;
  p.dy = take(y);
  p.dq = take(q);
  p.dk = take(k);
  p.dv = take(v);
  return cuda::FindFastest(static_cast<int>(runs.size()), [&](int i, cudaStream_t stream) {
    return runs[i].Launch(p, workspace.data(), stream);
  });
}

absl::StatusOr<AttentionRun> ChooseAttentionRun(const CudnnAttention& attention) {
  HT_ASSIGN_OR_RETURN(cuda::CudnnHandle* const handle, cuda::CudnnHandle::Current());
  const bool tune = cuda::AutotuneEnabled();
  const std::string key = Concat(handle->description(), " ", attention.ToString());
  cuda::AutotuneCache& cache = cuda::AutotuneCache::Global();
  if (tune) {
    if (const std::optional<std::string> record = cache.Find(key)) {
      std::vector<AttentionRun> kept;
      if (std::optional<AttentionRun> run = AttentionRunOf(attention, handle, *record)) {
        kept.push_back(*std::move(run));
        const absl::Status runs = MeasureAttention(attention, kept).status();
        if (runs.ok() || absl::IsResourceExhausted(runs)) return std::move(kept[0]);
      }
    }
  }
  absl::Status refusal;
  // Without tuning the first mostly runs, and more plans would only take time to build.
  for (const size_t limit : {tune ? kTriedAttentionPlans : 1, kTriedAttentionPlans}) {
    absl::StatusOr<std::vector<AttentionRun>> runs = FindAttentionRuns(attention, handle, limit);
    refusal.Update(runs.status());
    if (!runs.ok()) break;
    const absl::StatusOr<int> fastest = MeasureAttention(attention, *runs);
    // No memory to find out in: the library's first choice.
    if (absl::IsResourceExhausted(fastest.status())) return std::move((*runs)[0]);
    refusal.Update(fastest.status());
    if (fastest.ok()) {
      AttentionRun& run = (*runs)[*fastest];
      if (tune && runs->size() > 1) cache.Store(key, run.plan().choice.ToString());
      return std::move(run);
    }
    if (limit == kTriedAttentionPlans) break;
  }
  return refusal;
}

class CudnnAttentionKernel : public CudaKernel {
 public:
  CudnnAttentionKernel(const CudnnAttention& attention, AttentionRun run)
      : attention_(attention), run_(std::move(run)) {
    workspace_bytes_ = OwnBytes(attention) + run_.workspace_bytes() + kWorkspaceAlignment - 1;
    implementation_ = Concat("engine ", run_.plan().choice.ToString());
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const int64_t rows = attention_.rows();
    auto* const own = static_cast<char*>(AlignUp(args.workspace, kWorkspaceAlignment));
    void* const of_run = own + OwnBytes(attention_);
    AttentionPointers p;
    p.q = args.inputs[0];
    p.k = args.inputs[1];
    p.v = args.inputs[2];
    if (!attention_.gradient) {
      auto* const stats = static_cast<float*>(args.outputs[1]);
      p.y = args.outputs[0];
      p.max = stats;
      p.sum = own;
      HT_RETURN_IF_ERROR(run_.Launch(p, of_run, stream));
      HT_CUDA_RETURN_IF_ERROR(
          cuda::LaunchLogSums(reinterpret_cast<float*>(own), rows, stats + rows, stream));
      return absl::OkStatus();
    }
    p.y = const_cast<void*>(args.inputs[kYPort]);
    p.dy = args.inputs[kDyPort];
    p.log_sum_exp = own;
    p.delta = own + RowBytes(attention_);
    p.dq = args.outputs[0];
    p.dk = args.outputs[1];
    p.dv = args.outputs[2];
    HT_CUDA_RETURN_IF_ERROR(
        cuda::LaunchLogSumExp(static_cast<const float*>(args.inputs[kStatsPort]), rows,
                              reinterpret_cast<float*>(own), stream));
    return run_.Launch(p, of_run, stream);
  }

 private:
  CudnnAttention attention_;
  AttentionRun run_;
};

void AddCudnnAttention(KernelRegistry& r, const std::string& op, bool gradient) {
  AddCudaCandidate(
      r, "cudnn", op, {DType::kF16, DType::kBF16},
      [gradient](const ir::Node& node) { return SupportsAttention(node, gradient); },
      [gradient](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        const CudnnAttention attention = AttentionOf(node, gradient);
        HT_ASSIGN_OR_RETURN(AttentionRun run, ChooseAttentionRun(attention));
        return std::unique_ptr<Kernel>(new CudnnAttentionKernel(attention, std::move(run)));
      });
}

}  // namespace

void Register_cuda_cudnn_attention(KernelRegistry& r) {
  AddCudnnAttention(r, "scaled_dot_product_attention", false);
  AddCudnnAttention(r, "scaled_dot_product_attention_grad", true);
}

}  // namespace halftone::kernels
