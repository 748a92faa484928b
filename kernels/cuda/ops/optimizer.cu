// Algorithm: elementwise, many arrays a launch. Each array is cut into chunks of 4,096 elements; a
// block of 256 threads takes a chunk, whose array it finds by bisection of the chunk table in the
// parameters. What depends on the scalar operands alone (Adam's bias corrections, in f64) is
// computed by the block's first thread. An update with a trust ratio takes three launches: a block
// of the first computes the direction of a chunk and adds its squares and the parameter's in f64; a
// block of the second adds the chunks of an array, in a fixed order; the third is the update, which
// computes the direction again.
// Accesses: 16 bytes a thread where all of an array's pointers are aligned, one element elsewhere
// and in the tail. Formulas and order of operations: those of the CPU (optimizer_formulas.inc).
// Shared bytes: one Step (at most 112), and 256 for sums. Bound: memory. Bytes moved: each input
// once and each output once, the minimum: 28 an f32 element of Adam, and 2 for a 16-bit copy, 14 a
// bf16 element. With a trust ratio each input twice, where storing the direction would move 8 bytes
// an f32 element for the 16 of two averages.
// bf16: computed in f32 and stored as update_rounding.h says; a Philox block gives the bits of two
// results of four elements.
#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/ops/optimizer.cuh"

namespace halftone::cuda {
namespace updates {
namespace {

constexpr int kThreads = 256;

template <typename T>
__device__ T TrustOf(const UpdateSquares& squares) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels::functors::f32::TrustRatio(squares.param, squares.direction);
  } else {
    return kernels::functors::f64::TrustRatio(squares.param, squares.direction);
  }
}
template <int N, unsigned kSet, typename Update, typename S>
__device__ void AddSquares(const StepOf<Compute<S>, Update>& step,
                           const Chunk<S, kCountOf<kSet>>& c, int64_t e, UpdateSquares* sum) {
  Elements<N, kSet, Update, S> elements(c, e);
  elements.Apply(step, c.rounding);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const double param = elements.param[i], direction = elements.result[i];
    sum->param += param * param;
    sum->direction += direction * direction;
  }
}
// Calls run(std::integral_constant<int, N>(), e) for the packs of N elements of a chunk that fall to
// this thread.
template <typename S, int kStates, typename Run>
__device__ void ForPacks(const Chunk<S, kStates>& chunk, const Run& run) {
  constexpr int kPack = kPackOf<S>;
  const int64_t packs = chunk.aligned ? chunk.size / kPack : 0;
  for (int64_t k = threadIdx.x; k < packs; k += kThreads) {
    run(std::integral_constant<int, kPack>(), k * kPack);
  }
  for (int64_t e = packs * kPack + threadIdx.x; e < chunk.size; e += kThreads) {
    run(std::integral_constant<int, 1>(), e);
  }
}

// The sums of squares of each chunk.
template <typename S, unsigned kSet, typename Update>
__global__ void __launch_bounds__(kThreads)
    SquaresKernel(Update hyper, UpdateScalars scalars, UpdateBatch<S, kCountOf<kSet>> batch,
                  UpdateSquares* of_chunk) {
  using T = Compute<S>;
  using Step = StepOf<T, Update>;
  if (scalars.state->fault_id != 0 || !*scalars.apply) return;
  const int i = ArrayOfChunk(batch.table, blockIdx.x);
  const Chunk<S, kCountOf<kSet>> chunk(
      batch, i, static_cast<int64_t>(blockIdx.x - batch.table.first[i]) * batch.kChunk);
  HT_SHARED(Step, shared_step, [1]);
  if (threadIdx.x == 0) MakeStep<T>(hyper, scalars, &shared_step[0]);
  __syncthreads();
  const Step step = shared_step[0];
  UpdateSquares sum{0, 0};
  ForPacks(chunk, [&](auto n, int64_t e) {
    AddSquares<decltype(n)::value, kSet, Update>(step, chunk, e, &sum);
  });
  sum.param = BlockReduce(sum.param, Add(), 0.0);
  sum.direction = BlockReduce(sum.direction, Add(), 0.0);
  if (threadIdx.x == 0) of_chunk[blockIdx.x] = sum;
}

// Those of each array, a block for each.
template <int kArrays>
__global__ void __launch_bounds__(kThreads)
    TotalsKernel(UpdateScalars scalars, ChunkTable<kArrays> table, const UpdateSquares* of_chunk,
                 UpdateSquares* of_array) {
  if (scalars.state->fault_id != 0 || !*scalars.apply) return;
  UpdateSquares sum{0, 0};
  const uint32_t end = table.first[blockIdx.x + 1];
  for (uint32_t c = table.first[blockIdx.x] + threadIdx.x; c < end; c += kThreads) {
    sum.param += of_chunk[c].param;
    sum.direction += of_chunk[c].direction;
  }
  sum.param = BlockReduce(sum.param, Add(), 0.0);
  sum.direction = BlockReduce(sum.direction, Add(), 0.0);
  if (threadIdx.x == 0) of_array[blockIdx.x] = sum;
}

// of_array: of an update with a trust ratio, the totals. The 1: without it ptxas spills registers of
// the smallest update.
template <typename S, unsigned kSet, typename Update>
__global__ void __launch_bounds__(kThreads, 1)
    UpdateKernel(Update hyper, UpdateScalars scalars, UpdateBatch<S, kCountOf<kSet>> batch,
                 const UpdateSquares* of_array) {
  using T = Compute<S>;
  using Step = StepOf<T, Update>;
  if (scalars.state->fault_id != 0) return;
  const int i = ArrayOfChunk(batch.table, blockIdx.x);
  const Chunk<S, kCountOf<kSet>> chunk(
      batch, i, static_cast<int64_t>(blockIdx.x - batch.table.first[i]) * batch.kChunk);
  const bool apply = *scalars.apply;
  if (!apply && chunk.in_place()) return;
  HT_SHARED(Step, shared_step, [1]);
  if (threadIdx.x == 0) {
    MakeStep<T>(hyper, scalars, &shared_step[0]);
    if constexpr (ops::kHasTrustRatio<Update>) {
      if (apply) shared_step[0].trust = TrustOf<T>(of_array[i]);
    }
  }
  __syncthreads();
  const Step step = shared_step[0];
  ForPacks(chunk, [&](auto n, int64_t e) {
    UpdatePack<decltype(n)::value, kSet, Update>(step, apply, chunk, e);
  });
}
template <typename S, int kStates>
void AddMember(const UpdateGroup& group, size_t member, UpdateBatch<S, kStates>* batch) {
  const bool kahan = batch->rounding.how == ops::UpdateRounding::kKahan;
  const int slots = kStates + static_cast<int>(kahan);
  const void* const* inputs = group.inputs + member * (UpdatePort::kFirstState + slots);
  void* const* outputs = group.outputs + member * (1 + slots);
  const int i = batch->table.count;
  batch->param[i] = inputs[UpdatePort::kParam];
  batch->grad[i] = inputs[UpdatePort::kGrad];
  batch->new_param[i] = outputs[0];
  for (int s = 0; s < slots; ++s) {
    batch->state[s][i] = inputs[UpdatePort::kFirstState + s];
    batch->new_state[s][i] = outputs[1 + s];
  }
  if constexpr (kIsLow<S>) batch->seed[i] = group.members[member].seed;
  batch->size[i] = group.members[member].size;
  batch->copy_type[i] = group.members[member].copy;
  if (batch->copy_type[i] != CopyType::kNone) batch->copy[i] = group.copies[member];
  batch->table.Add(batch->size[i], batch->kChunk);
}

// The sums of a batch, its arrays' in front. Batches run one after the other, so that each may have
// the same room.
template <unsigned kSet, typename Update, typename S>
cudaError_t LaunchSums(const Update& hyper, const UpdateScalars& scalars,
                       const UpdateBatch<S, kCountOf<kSet>>& batch, const UpdateGroup& group,
                       cudaStream_t stream) {
  using Batch = UpdateBatch<S, kCountOf<kSet>>;
  UpdateSquares* const of_chunk = group.squares + batch.table.count;
  const cudaError_t error = LaunchKernel(SquaresKernel<S, kSet, Update>, batch.table.chunks(),
                                         kThreads, 0, stream, hyper, scalars, batch, of_chunk);
  if (error != cudaSuccess) return error;
  return LaunchKernel(TotalsKernel<Batch::kArrays>, static_cast<uint32_t>(batch.table.count),
                      kThreads, 0, stream, scalars, batch.table, of_chunk, group.squares);
}
template <typename S, unsigned kSet, typename Update>
cudaError_t LaunchSet(const Update& hyper, const UpdateGroup& group, Rounding rounding,
                      cudaStream_t stream) {
  using Batch = UpdateBatch<S, kCountOf<kSet>>;
  static_assert(sizeof(Update) + sizeof(UpdateScalars) + sizeof(Batch) + sizeof(void*) <= 4096);
  const UpdateScalars scalars = ScalarsOf(group.inputs, group.state);
  for (size_t next = 0; next < group.count;) {
    Batch batch{};
    batch.rounding = rounding;
    for (; next < group.count; ++next) {
      if (!batch.table.HasRoom(group.members[next].size, batch.kChunk)) break;
      AddMember(group, next, &batch);
    }
    if (batch.table.chunks() == 0) continue;
    if constexpr (ops::kHasTrustRatio<Update>) {
      const cudaError_t error = LaunchSums<kSet>(hyper, scalars, batch, group, stream);
      if (error != cudaSuccess) return error;
    }
    const cudaError_t error =
        LaunchKernel(UpdateKernel<S, kSet, Update>, batch.table.chunks(), kThreads, 0, stream,
                     hyper, scalars, batch, group.squares);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}
}  // namespace
}  // namespace updates

#define HT_UPDATE(Name, ...)                                                                       \
  cudaError_t LaunchUpdate(const ops::Name##Update& hyper, const UpdateGroup& group,               \
                           const UpdateStorage& storage, cudaStream_t stream) {                    \
    return ops::WithStates<ops::Name##Update>(StateSet(hyper), [&](auto set) {                     \
      constexpr unsigned kSet = decltype(set)::value;                                              \
      return updates::ForStored(storage.dtype, [&](auto zero) {                                    \
        return updates::LaunchSet<decltype(zero), kSet>(hyper, group, {storage.rounding}, stream); \
      });                                                                                          \
    });                                                                                            \
  }
#include "halftone/graph/ops/support/optimizers.def"

}  // namespace halftone::cuda
