// Algorithm: updates of rows of one table, elementwise; mapping as in row_groups.cuh. Accesses, formulas
// and rounding: those of optimizer.cu. Shared bytes: one Step (at most 112). Bound: memory. Bytes moved:
// of the tables the rows that are updated, once each way.
#include "halftone/kernels/cuda/device/row_groups.cuh"
#include "halftone/kernels/cuda/ops/optimizer.cuh"

namespace halftone::cuda {
namespace updates {
namespace {

// The rows are all different, so that no two threads write one element.
template <typename S, unsigned kSet, typename Update, int N>
__global__ void __launch_bounds__(kRowThreads, 1)
    UpdateRowsKernel(Update hyper, UpdateScalars scalars, RowArrays<S, kCountOf<kSet>> a,
                     int lanes) {
  using T = Compute<S>;
  using Step = StepOf<T, Update>;
  if (scalars.state->fault_id != 0 || !*scalars.apply) return;
  HT_SHARED(Step, shared_step, [1]);
  if (threadIdx.x == 0) MakeStep<T>(hyper, scalars, &shared_step[0]);
  __syncthreads();
  const Step step = shared_step[0];
  ForRowUnits(a.count, a.width / N, lanes, [&](int64_t i, int64_t unit) {
    const int64_t id = a.ids[i];
    if (id < 0 || id >= a.rows) return;
    const Chunk<S, kCountOf<kSet>> row(a, id, i);
    UpdatePack<N, kSet, Update>(step, true, row, unit * N);
  });
}
template <typename S, unsigned kSet, typename Update>
cudaError_t LaunchRows(const Update& hyper, const RowUpdate& update, Rounding rounding,
                       cudaStream_t stream) {
  static_assert(!ops::kHasTrustRatio<Update>, "a ratio is of the whole tensor");
  const bool kahan = rounding.how == ops::UpdateRounding::kKahan;
  const int slots = kCountOf<kSet> + static_cast<int>(kahan);
  RowArrays<S, kCountOf<kSet>> arrays{};
  uintptr_t all = 0;
  const auto aligned = [&all](auto* p) {
    all |= reinterpret_cast<uintptr_t>(p);
    return p;
  };
  arrays.param = aligned(update.outputs[0]);
  for (int s = 0; s < slots; ++s) arrays.state[s] = aligned(update.outputs[1 + s]);
  arrays.grad = aligned(update.inputs[UpdatePort::kGrad]);
  arrays.ids = static_cast<const int64_t*>(update.inputs[ops::RowUpdatePort::kIds]);
  arrays.rows = update.rows;
  arrays.width = update.width;
  arrays.count = update.count;
  arrays.seed = update.seed;
  arrays.rounding = rounding;
  constexpr int kPack = kPackOf<S>;
  const bool packs = update.width % kPack == 0 && all % 16 == 0;
  const RowGroups groups(update.count, packs ? update.width / kPack : update.width);
  return LaunchKernel(
      packs ? UpdateRowsKernel<S, kSet, Update, kPack> : UpdateRowsKernel<S, kSet, Update, 1>,
      groups.grid, kRowThreads, 0, stream, hyper, ScalarsOf(update.inputs, update.state), arrays,
      groups.lanes);
}
}  // namespace
}  // namespace updates

#define HT_ROW_WISE(Name, ...)                                                              \
  cudaError_t LaunchRowUpdate(const ops::Name##Update& hyper, const RowUpdate& update,      \
                              const UpdateStorage& storage, cudaStream_t stream) {          \
    if (update.count * update.width == 0) return cudaSuccess;                               \
    return ops::WithStates<ops::Name##Update>(StateSet(hyper), [&](auto set) {              \
      constexpr unsigned kSet = decltype(set)::value;                                       \
      return updates::ForStored(storage.dtype, [&](auto zero) {                             \
        return updates::LaunchRows<decltype(zero), kSet>(hyper, update, {storage.rounding}, \
                                                         stream);                           \
      });                                                                                   \
    });                                                                                     \
  }
#include "halftone/graph/ops/support/optimizers.def"
}  // namespace halftone::cuda
