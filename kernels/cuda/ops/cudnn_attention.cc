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
#include <array>
#include <optional>

#include "halftone/core/align.h"
#include "halftone/graph/ops/support/attention.h"
#include "halftone/kernels/cuda/ops/attention_stats.h"
#include "halftone/kernels/cuda/ops/cudnn_nodes.h"
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

// Of [..., heads, rows, columns] as [batch, heads, rows, columns].
CudnnTensor OperandOf(DType dtype, const ops::OperandView& view) {
  const Shape& s = view.shape;
  const int rank = s.rank();
  const ops::HeadRows lie = ops::HeadRowsOf(view);
  CudnnTensor t;
  t.dtype = dtype == DType::kF16 ? CUDNN_DATA_HALF : CUDNN_DATA_BFLOAT16;
  int64_t batch = 1;
  for (int axis = 0; axis + 3 < rank; ++axis) batch *= s[axis];
  t.dims = {batch, rank > 2 ? s[rank - 3] : 1, s[rank - 2], s[rank - 1]};
  // Of an axis of one element any stride is right; the library has those of dense tensors for that.
  t.strides = {batch > 1 ? lie.batch : t.dims[1] * t.dims[2] * t.dims[3],
               t.dims[1] > 1 ? lie.head : t.dims[2] * t.dims[3], lie.row, 1};
  return t;
}

// Where each of query, key and value begins in the operand that holds it, in bytes.
std::array<int64_t, 3> OffsetsOf(const ir::Node& node) {
  const ops::AttentionViews views = ops::AttentionViewsOf(node);
  return {2 * views.query.offset, 2 * views.key.offset, 2 * views.value.offset};
}

absl::Status SupportsAttention(const ir::Node& node, bool gradient) {
  HT_RETURN_IF_ERROR(PlainInputs(node));
  if (node.num_inputs() > (gradient ? kGradMaskPort : kMaskPort)) return Unimplemented("a mask");
  if (node.attrs().GetFloat("dropout_p") > 0) return Unimplemented("dropout");
  if (cudnnGetVersion() < kOldestAttention) {
    return Unimplemented("cuDNN ", cudnnGetVersion(), "; expected ", kOldestAttention, " or newer");
  }
  const CudnnAttention a = CudnnAttentionOf(node, gradient);
  for (const CudnnTensor* t : {&a.q, &a.k, &a.v}) {
    if (t->elements() == 0) return Unimplemented("nothing to do");
    if (t->dims[3] % 8 != 0 || t->dims[3] > 256) {
      return Unimplemented(t->dims[3], " columns; expected a multiple of 8, at most 256");
    }
  }
  for (const int64_t offset : OffsetsOf(node)) {
    if (offset % cuda::kTensorAlignment != 0) {
      return Unimplemented("an operand that begins ", offset,
                           " bytes behind its place; expected a ", "multiple of ",
                           cuda::kTensorAlignment);
    }
  }
  for (const CudnnTensor* t : a.tensors()) {
    for (int axis = 0; axis < 3; ++axis) {
      if (t->strides[axis] % 8 == 0) continue;
      return Unimplemented("a stride of ", t->strides[axis], "; expected a multiple of 8");
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
  HT_ASSIGN_OR_RETURN(std::vector<CudnnPlan> plans, CudnnAttentionPlans(attention, target, limit));
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
  const int64_t dq = a.gradient ? of(a.dq) : 0, dk = a.gradient ? of(a.dk) : 0;
  const int64_t dv = a.gradient ? of(a.dv) : 0;
  HT_ASSIGN_OR_RETURN(const auto operands,
                      cuda::ScratchMemory::Allocate(q + k + v + 2 * (y + row) + dq + dk + dv));
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
  p.dq = take(dq);
  p.dk = take(dk);
  p.dv = take(dv);
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
  CudnnAttentionKernel(const CudnnAttention& attention, std::array<int64_t, 3> offsets,
                       AttentionRun run)
      : attention_(attention), offsets_(offsets), run_(std::move(run)) {
    workspace_bytes_ = OwnBytes(attention) + run_.workspace_bytes() + kWorkspaceAlignment - 1;
    implementation_ = Concat("engine ", run_.plan().choice.ToString());
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    const int64_t rows = attention_.rows();
    auto* const own = static_cast<char*>(AlignUp(args.workspace, kWorkspaceAlignment));
    void* const of_run = own + OwnBytes(attention_);
    AttentionPointers p;
    const auto operand = [&](int port) {
      return static_cast<const char*>(args.inputs[port]) + offsets_[static_cast<size_t>(port)];
    };
    p.q = operand(0);
    p.k = operand(1);
    p.v = operand(2);
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
  std::array<int64_t, 3> offsets_;
  AttentionRun run_;
};

void AddCudnnAttention(KernelRegistry& r, const std::string& op, bool gradient) {
  AddCudaCandidate(
      r, "cudnn", op, {DType::kF16, DType::kBF16},
      [gradient](const ir::Node& node) { return SupportsAttention(node, gradient); },
      [gradient](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        const CudnnAttention attention = CudnnAttentionOf(node, gradient);
        HT_ASSIGN_OR_RETURN(AttentionRun run, ChooseAttentionRun(attention));
        return std::unique_ptr<Kernel>(
            new CudnnAttentionKernel(attention, OffsetsOf(node), std::move(run)));
      });
}

}  // namespace

CudnnAttention CudnnAttentionOf(const ir::Node& node, bool gradient) {
  const ops::AttentionViews views = ops::AttentionViewsOf(node);
  const DType dtype = node.input_type(0).dtype;
  CudnnAttention a;
  a.gradient = gradient;
  a.q = OperandOf(dtype, views.query);
  a.k = OperandOf(dtype, views.key);
  a.v = OperandOf(dtype, views.value);
  a.y = OperandOf(dtype, views.PlacedView(views.YShape()));
  if (gradient) {
    a.dq = OperandOf(dtype, views.PlacedView(views.query.shape));
    a.dk = OperandOf(dtype, views.PlacedView(views.key.shape));
    a.dv = OperandOf(dtype, views.PlacedView(views.value.shape));
  }
  a.scale = static_cast<float>(node.attrs().GetFloat("scale"));
  a.causal = node.attrs().GetBool("is_causal");
  return a;
}

absl::StatusOr<std::vector<CudnnPlan>> CudnnAttentionPlans(const CudnnAttention& attention,
                                                           const cuda::CudnnTarget& target,
                                                           size_t limit) {
  HT_ASSIGN_OR_RETURN(const auto graph,
                      cuda::CudnnAttentionGraph::Make(AttentionRun::OneStep(attention), target));
  return cuda::FindCudnnPlans(graph, target, limit);
}

void Register_cuda_cudnn_attention(KernelRegistry& r) {
  AddCudnnAttention(r, "scaled_dot_product_attention", false);
  AddCudnnAttention(r, "scaled_dot_product_attention_grad", true);
}

}  // namespace halftone::kernels
