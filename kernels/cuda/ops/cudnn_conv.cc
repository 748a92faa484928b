// conv2d, conv3d and their gradients in input and weight through cuDNN's operation graphs.
//
// Sums are in f32, without TF32 and in a fixed order unless the node allows otherwise. A bias
// in the operands' dtype is added in the same graph, before the one rounding; round-biases has seen
// to the dtype (engines that add an f32 bias to 16-bit operands are compiled at run time, where
// NVRTC is installed: results may not depend on that). An f32 weight gradient of
// 16-bit operands comes from an engine that makes one or, where there is none, from the operands
// widened to f32, which TF32 holds exactly.
//
// Where the library names few plans, tuning also tries settings of the fastest's engine that it does
// not name (knob_search.h): above all that of an f32 weight gradient of 16-bit operands.
//
// No plan is taken that was not run once: one that fails is passed over for the next or, if there
// is none, leaves the convolution to another candidate.
#include <algorithm>
#include <optional>

#include "halftone/graph/ops/support/window.h"
#include "halftone/kernels/cuda/cudnn/knob_search.h"
#include "halftone/kernels/cuda/ops/cudnn_nodes.h"
#include "halftone/kernels/cuda/runtime/autotune.h"
#include "halftone/kernels/cuda/runtime/autotune_cache.h"
#include "halftone/kernels/cuda/runtime/kernel.h"

namespace halftone::kernels {
namespace {

using cuda::ConvProduct;
using cuda::ConvRun;
using cuda::CudnnConv;
using cuda::CudnnPlan;
using cuda::CudnnTensor;

constexpr size_t kTriedPlans = 10;
// Fewer than these leave a search to us, by as many plans as there is time for: each may be compiled
// for a second or two.
constexpr size_t kFewPlans = 4;
constexpr size_t kSearchedPlans = 9;
constexpr double kSearchSeconds = 8;  // a network has dozens of shapes, and waits

cudnnDataType_t CudnnDType(DType dtype) {
  return dtype == DType::kF16    ? CUDNN_DATA_HALF
         : dtype == DType::kBF16 ? CUDNN_DATA_BFLOAT16
                                 : CUDNN_DATA_FLOAT;
}

CudnnTensor TensorOf(const ir::ValueType& type) {
  CudnnTensor t;
  t.dtype = CudnnDType(type.dtype);
  const auto strides = ir::StridesOf(type);
  t.dims.assign(type.shape.dims().begin(), type.shape.dims().end());
  t.strides.assign(strides.begin(), strides.end());
  return t;
}

// The types of x, w and y of any of the three ops.
struct OperandTypes {
  ir::ValueType x, w, y;
};

OperandTypes TypesOf(const ir::Node& node, ConvProduct product) {
  const ir::ValueType &a = node.input_type(0), &b = node.input_type(1), &out = node.output_type();
  if (product == ConvProduct::kGradInput) return {out, b, a};
  if (product == ConvProduct::kGradWeight) return {a, out, b};
  return {a, b, out};
}

absl::Status Supports(const ir::Node& node, ConvProduct product) {
  const OperandTypes t = TypesOf(node, product);
  if (product == ConvProduct::kForward && node.num_inputs() > 2 &&
      node.input_type(2).dtype != t.x.dtype) {
    return Unimplemented("a bias in ", Name(node.input_type(2).dtype), "; expected that of x");
  }
  if (t.x.layout != t.y.layout) return Unimplemented("x and y lie in two layouts");
  if (t.w.layout != ir::Layout::kPlain) return Unimplemented("w is not plain");
  if (t.x.num_elements() == 0 || t.w.num_elements() == 0) return Unimplemented("nothing to do");
  return absl::OkStatus();
}

using Way = CudnnConvWay;
constexpr std::pair<Way, const char*> kWays[] = {{Way::kDirect, "direct"},
                                                 {Way::kWidened, "widened"}};

Way WayOf(const ConvRun& run) { return run.widened() ? Way::kWidened : Way::kDirect; }

// The graph of a way; nothing if it is none for this convolution.
std::optional<CudnnConv> GraphOfWay(const CudnnConv& conv, Way way) {
  switch (way) {
    case Way::kDirect:
      return conv;
    case Way::kWidened:
      if (conv.w.dtype == conv.x.dtype) return std::nullopt;
      return ConvRun::Widened(conv);
  }
  return std::nullopt;
}

// What the cache holds: "direct 12 2=3" or "widened 12".
std::string Record(const ConvRun& run) {
  for (const auto& [way, name] : kWays) {
    if (way == WayOf(run)) return Concat(name, " ", run.plan().choice.ToString());
  }
  return "";
}

// Nothing for what is no record, or none that holds for this convolution on this device.
std::optional<ConvRun> FromRecord(const cuda::ConvRunShape& shape, cuda::CudnnHandle* handle,
                                  const std::string& record) {
  const size_t space = record.find(' ');
  if (space == std::string::npos) return std::nullopt;
  const auto lock = handle->Lock();
  const cuda::CudnnTarget target{handle->get(), nullptr};
  for (const auto& [way, name] : kWays) {
    if (record.substr(0, space) != name) continue;
    const std::optional<CudnnConv> conv = GraphOfWay(shape.conv, way);
    const auto choice = cuda::CudnnChoice::Parse(record.substr(space + 1));
    if (!conv.has_value() || !choice.ok()) return std::nullopt;
    const auto graph = cuda::CudnnConvGraph::Make(*conv, target);
    if (!graph.ok()) return std::nullopt;
    absl::StatusOr<CudnnPlan> plan = cuda::RebuildCudnnPlan(*graph, target, *choice);
    if (!plan.ok()) return std::nullopt;
    return ConvRun(shape, *std::move(plan), handle);
  }
  return std::nullopt;
}

// The fastest; of one, whether it runs. Error: ResourceExhausted if there is no memory to find out.
absl::StatusOr<int> Measure(const CudnnConv& conv, std::vector<ConvRun>& runs) {
  int64_t workspace_bytes = 0;
  for (const ConvRun& run : runs)
    workspace_bytes = std::max(workspace_bytes, run.workspace_bytes());
  HT_ASSIGN_OR_RETURN(const auto x, cuda::ScratchMemory::Allocate(conv.x.bytes()));
  HT_ASSIGN_OR_RETURN(const auto w, cuda::ScratchMemory::Allocate(conv.w.bytes()));
  HT_ASSIGN_OR_RETURN(const auto y, cuda::ScratchMemory::Allocate(conv.y.bytes()));
  HT_ASSIGN_OR_RETURN(const auto bias, cuda::ScratchMemory::Allocate(conv.w.dims[0] * 4));
  HT_ASSIGN_OR_RETURN(const auto workspace, cuda::ScratchMemory::Allocate(workspace_bytes));
  const cuda::ConvPointers pointers{x.data(), w.data(), y.data(), bias.data()};
  return cuda::FindFastest(static_cast<int>(runs.size()), [&](int i, cudaStream_t stream) {
    return runs[i].Launch(pointers, workspace.data(), stream);
  });
}

// Goes on from the fastest of `runs`, which are of one way, and leaves what is fastest then. Changes
// nothing where none of them runs.
void SearchKnobs(const cuda::ConvRunShape& shape, cuda::CudnnHandle* handle,
                 std::vector<ConvRun>& runs) {
  absl::StatusOr<int> fastest = Measure(shape.conv, runs);
  if (!fastest.ok()) return;
  const cuda::CudnnTarget target{handle->get(), nullptr};
  cuda::CudnnKnobSearch search(runs[*fastest].plan(), target, kSearchedPlans, kSearchSeconds);
  while (fastest.ok()) {
    std::vector<ConvRun> next;
    next.push_back(std::move(runs[*fastest]));
    runs = std::move(next);
    {
      const auto lock = handle->Lock();
      for (CudnnPlan& plan : search.Next(runs[0].plan().choice)) {
        runs.emplace_back(shape, std::move(plan), handle);
      }
    }
    if (runs.size() == 1) return;
    fastest = Measure(shape.conv, runs);
  }
}

// The runs to choose from, at most `limit`, best first as far as the library knows. `tune`: where it
// knows few, of those the fastest that a search finds.
absl::StatusOr<std::vector<ConvRun>> FindRuns(const cuda::ConvRunShape& shape,
                                              cuda::CudnnHandle* handle, size_t limit, bool tune) {
  const cuda::CudnnTarget target{handle->get(), nullptr};
  std::vector<ConvRun> runs;
  absl::Status refusal;
  const auto find = [&](Way way) -> absl::Status {
    const auto lock = handle->Lock();
    HT_ASSIGN_OR_RETURN(std::vector<CudnnPlan> plans,
                        CudnnConvPlans(shape.conv, way, target, limit));
    for (CudnnPlan& plan : plans) runs.emplace_back(shape, std::move(plan), handle);
    return absl::OkStatus();
  };
  refusal.Update(find(Way::kDirect));
  const bool enough = runs.size() == limit;
  if (tune && !runs.empty() && runs.size() < kFewPlans) SearchKnobs(shape, handle, runs);
  if (!enough) refusal.Update(find(Way::kWidened));
  if (runs.empty()) return refusal;
  return runs;
}

absl::StatusOr<ConvRun> ChooseRun(const cuda::ConvRunShape& shape) {
  HT_ASSIGN_OR_RETURN(cuda::CudnnHandle* const handle, cuda::CudnnHandle::Current());
  const bool tune = cuda::AutotuneEnabled();
  const std::string key = Concat(handle->description(), " ", shape.conv.ToString());
  cuda::AutotuneCache& cache = cuda::AutotuneCache::Global();
  if (tune) {
    if (const std::optional<std::string> record = cache.Find(key)) {
      std::vector<ConvRun> kept;
      if (std::optional<ConvRun> run = FromRecord(shape, handle, *record)) {
        kept.push_back(*std::move(run));
        const absl::Status runs = Measure(shape.conv, kept).status();
        if (runs.ok() || absl::IsResourceExhausted(runs)) return std::move(kept[0]);
      }
    }
  }
  absl::Status refusal;
  // Without tuning the first mostly runs, and more plans would only take time to build.
  for (const size_t limit : {tune ? kTriedPlans : 1, kTriedPlans}) {
    absl::StatusOr<std::vector<ConvRun>> runs = FindRuns(shape, handle, limit, tune);
    refusal.Update(runs.status());
    if (!runs.ok()) break;
    const absl::StatusOr<int> fastest = Measure(shape.conv, *runs);
    // No memory to find out in: the library's first choice.
    if (absl::IsResourceExhausted(fastest.status())) return std::move((*runs)[0]);
    refusal.Update(fastest.status());
    if (fastest.ok()) {
      if (tune) cache.Store(key, Record((*runs)[*fastest]));
      return std::move((*runs)[*fastest]);
    }
    if (limit == kTriedPlans) break;
  }
  return refusal;
}

class CudnnConvKernel : public CudaKernel {
 public:
  CudnnConvKernel(ConvProduct product, bool has_bias, ConvRun run)
      : product_(product), has_bias_(has_bias), run_(std::move(run)) {
    workspace_bytes_ = run_.workspace_bytes();
    implementation_ = Concat("engine ", Record(run_));
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    cuda::ConvPointers p;
    p.x = product_ == ConvProduct::kGradInput ? args.outputs[0] : args.inputs[0];
    p.w = product_ == ConvProduct::kGradWeight ? args.outputs[0] : args.inputs[1];
    p.y = product_ == ConvProduct::kForward     ? args.outputs[0]
          : product_ == ConvProduct::kGradInput ? args.inputs[0]
                                                : args.inputs[1];
    if (has_bias_) p.bias = args.inputs[2];
    return run_.Launch(p, args.workspace, stream);
  }

 private:
  ConvProduct product_;
  bool has_bias_;
  ConvRun run_;
};

void AddCudnnConv(KernelRegistry& r, const std::string& op, ConvProduct product) {
  AddCudaCandidate(
      r, "cudnn", op, {DType::kF32, DType::kF16, DType::kBF16},
      [product](const ir::Node& node) { return Supports(node, product); },
      [product](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<Kernel>> {
        const cuda::ConvRunShape shape = CudnnConvOf(node, product);
        HT_ASSIGN_OR_RETURN(ConvRun run, ChooseRun(shape));
        return std::unique_ptr<Kernel>(
            new CudnnConvKernel(product, shape.conv.has_bias, std::move(run)));
      });
}

}  // namespace

cuda::ConvRunShape CudnnConvOf(const ir::Node& node, ConvProduct product) {
  OperandTypes t = TypesOf(node, product);
  const ops::ConvGeometry g = ops::ConvGeometryOf(node);
  cuda::ConvRunShape shape;
  shape.reorder_filter = t.x.layout == ir::Layout::kChannelsLast && t.w.shape.dim(1) > 1 &&
                         g.h.kernel * g.w.kernel > 1;
  t.w.layout = t.x.layout;
  CudnnConv& conv = shape.conv;
  conv.product = product;
  conv.x = TensorOf(t.x);
  conv.w = TensorOf(t.w);
  conv.y = TensorOf(t.y);
  for (const ops::WindowAxis* axis : g.axes()) {
    conv.stride.push_back(axis->stride);
    conv.padding.push_back(axis->padding);
    conv.dilation.push_back(axis->dilation);
  }
  conv.allow_tf32 = node.attrs().GetBool("tf32");
  conv.deterministic = node.attrs().GetBool("deterministic");
  if (product == ConvProduct::kForward && node.num_inputs() > 2) {
    conv.has_bias = true;
    conv.bias_dtype = CudnnDType(node.input_type(2).dtype);
  }
  return shape;
}

absl::StatusOr<std::vector<CudnnPlan>> CudnnConvPlans(const CudnnConv& conv, CudnnConvWay way,
                                                      const cuda::CudnnTarget& target,
                                                      size_t limit) {
  const std::optional<CudnnConv> of_way = GraphOfWay(conv, way);
  if (!of_way.has_value()) return Unimplemented("it would be the same convolution");
  HT_ASSIGN_OR_RETURN(const auto graph, cuda::CudnnConvGraph::Make(*of_way, target));
  // No heuristic names an engine that makes f32 of 16 bit.
  const bool mixed = conv.w.dtype != conv.x.dtype;
  return mixed && way == Way::kDirect ? cuda::TryCudnnEngines(graph, target, limit)
                                      : cuda::FindCudnnPlans(graph, target, limit);
}

void Register_cuda_cudnn_conv(KernelRegistry& r) {
  for (const int dims : ops::kConvDims) {
    for (const auto& [suffix, product] : cuda::kConvProducts) {
      AddCudnnConv(r, ops::ConvOp(dims, suffix), product);
    }
  }
}

}  // namespace halftone::kernels
