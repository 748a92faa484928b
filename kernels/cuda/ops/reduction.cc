// sum, mean, sum_to_shape and max.
#include "halftone/kernels/cuda/ops/reduction.h"

#include <algorithm>

#include "halftone/kernels/cuda/device/team_size.h"
#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/reduce_plan.h"

namespace halftone::cuda {
namespace {

constexpr int64_t kChunkElements = 8192, kThreadRows = 16;

}  // namespace

ReduceCut CutReduction(const ReduceShape& s, DType x) {
  ReduceCut cut{};
  cut.chunks = cut.team = cut.lanes = 1;
  cut.tiles = 1;
  const int64_t pack = std::min<int64_t>(16 / static_cast<int64_t>(SizeOf(x)), kReduceMaxPack);
  const int64_t n = s.reduced * s.rows;
  if (s.width == 1) {
    cut.packed = s.rows % pack == 0 || (s.kept == 1 && s.reduced == 1);
    cut.team = TeamSize(n, /*few=*/cut.packed ? pack : 1, /*most=*/64);
    if (cut.team > kWarp) {
      cut.chunks = std::clamp<int64_t>(kEnoughBlocks / s.kept, 1, CeilDiv(n, kChunkElements));
    }
  } else {
    cut.packed = s.width % pack == 0;
    const int64_t packs = cut.packed ? s.width / pack : s.width;
    while (cut.lanes < kWarp && cut.lanes < packs) cut.lanes *= 2;
    cut.tiles = CeilDiv(packs, cut.lanes);
    const int64_t most = n * cut.lanes / kTeamBlock / kThreadRows;
    cut.chunks =
        std::clamp<int64_t>(kEnoughBlocks / (s.kept * cut.tiles), 1, std::max<int64_t>(1, most));
  }
  cut.by_chunks = WideDivisorOf(cut.chunks);
  cut.by_tiles = WideDivisorOf(cut.tiles);
  cut.by_rows =
      WideDivisorOf(s.width == 1 && cut.packed ? std::max<int64_t>(1, s.rows / pack) : s.rows);
  return cut;
}

}  // namespace halftone::cuda

namespace halftone::kernels {
namespace {

cuda::ReduceAxes AxesOf(const std::vector<ReducePlan::Axis>& axes) {
  cuda::ReduceAxes result{};
  for (const ReducePlan::Axis& axis : axes) {
    result.extent[result.count] = cuda::WideDivisorOf(axis.extent);
    result.stride[result.count++] = axis.stride;
  }
  return result;
}

class ReductionKernel : public CudaKernel {
 public:
  explicit ReductionKernel(const ir::Node& node) : is_max_(node.op().name == "max") {
    static_assert(ReducePlan::kMaxAxes <= 4);
    const ir::ValueType& x = node.input_type(0);
    const int64_t elements = x.num_elements();
    results_ = node.output_type().num_elements();
    r_.x_dtype = x.dtype;
    r_.y_dtype = node.output_type().dtype;
    r_.divisor = 1;
    if (results_ == 0) return;
    if (node.op().name == "mean") {
      r_.divisor = static_cast<double>(elements) / static_cast<double>(results_);
    }
    if (elements == 0) {
      r_.shape = {results_, 1, 0, 1, {}, {}};
      r_.cut.chunks = 1;
      return;
    }
    const ReducePlan plan(x, ReducedAxesOf(node));
    r_.shape = {plan.kept,
                plan.reduced,
                plan.rows,
                plan.width,
                AxesOf(plan.kept_axes()),
                AxesOf(plan.reduced_axes())};
    r_.cut = CutReduction(r_.shape, x.dtype);
    if (r_.cut.chunks > 1) workspace_bytes_ = r_.cut.chunks * results_ * sizeof(double);
  }

 protected:
  absl::Status Launch(const KernelArgs& args, cudaStream_t stream) override {
    if (results_ == 0) return absl::OkStatus();
    cuda::Reduction r = r_;
    r.x = args.inputs[0];
    r.y = args.outputs[0];
    r.partials = args.workspace;
    if (is_max_) {
      HT_CUDA_RETURN_IF_ERROR(LaunchMax(r, stream));
    } else {
      HT_CUDA_RETURN_IF_ERROR(LaunchSum(r, stream));
    }
    return absl::OkStatus();
  }

 private:
  bool is_max_;
  int64_t results_;
  cuda::Reduction r_{};
};

}  // namespace

void Register_cuda_reduction(KernelRegistry& r) {
  AddCudaKernel<ReductionKernel>(r, "sum", ir::kNumeric, ReducesInOrder);
  AddCudaKernel<ReductionKernel>(r, "mean", ir::kFloats, ReducesInOrder);
  AddCudaKernel<ReductionKernel>(r, "sum_to_shape", ir::kNumeric, ReducesInOrder);
  AddCudaKernel<ReductionKernel>(r, "max", ir::kNumeric, ReducesInOrder);
}

}  // namespace halftone::kernels
