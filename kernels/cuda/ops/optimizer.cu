// Algorithm: elementwise, many arrays a launch. Each array is cut into chunks of 4,096 elements; a
// block of 256 threads takes a chunk, whose array it finds by bisection of the chunk table in the
// parameters. What depends on the scalar operands alone (Adam's bias corrections, in f64) is
// computed by the block's first thread. An update with a trust ratio takes three launches: a block
// of the first computes the direction of a chunk and adds its squares and the parameter's in f64; a
// block of the second adds the chunks of an array, in a fixed order; the third is the update, which
// computes the direction again.
// Accesses: 16 bytes a thread where all of an array's pointers are aligned, one element elsewhere
// and in the tail. Formulas and order of operations: those of the CPU (optimizer_formulas.inc).
// Shared bytes: one Step (at most 104), and 256 for sums. Bound: memory. Bytes moved: each input
// once and each output once, the minimum: 28 an f32 element of Adam, and 2 for a 16-bit copy. With a
// trust ratio each input twice, where storing the direction would move 8 bytes an f32 element for
// the 16 of two averages.
// Updates of rows: one table, mapping as in row_groups.cuh, the same accesses. Bytes moved: of the
// tables the rows that are updated, once each way.
#include "halftone/kernels/cuda/device/chunk_table.h"
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/device/row_groups.cuh"
#include "halftone/kernels/cuda/ops/optimizer.h"

#define HT_FUNCTOR_INLINE __device__ __forceinline__
namespace halftone::kernels::functors::f32 {
#include "halftone/kernels/optimizer_formulas.inc"
}
namespace halftone::kernels::functors::f64 {
#include "halftone/kernels/optimizer_formulas.inc"
}
#undef HT_FUNCTOR_INLINE

namespace halftone::cuda {
namespace {

using ops::UpdatePort;

constexpr int kThreads = 256;

// The number of states in a set.
template <unsigned kSet>
inline constexpr int kCountOf = static_cast<int>(kSet & 1) + kCountOf<(kSet >> 1)>;
template <>
inline constexpr int kCountOf<0> = 0;

// What all parameters of an update share: the scalar operands, in device memory.
struct UpdateScalars {
  const float *lr, *inv_scale, *clip;
  const bool* apply;
  const int64_t* step;
  const kernels::DeviceRunState* state;
};

// The arrays of one launch, and of each parameter its `kStates` states. A batch is as large as
// 4 KiB of parameters allow.
template <int kStates>
struct UpdateBatch {
  static constexpr int kArrays = kStates < 2 ? 60 : kStates == 2 ? 48 : 36;
  static constexpr int64_t kChunk = kUpdateChunk;
  static constexpr int kRoom = kStates + (kStates == 0);  // no array is empty

  const void *param[kArrays], *grad[kArrays], *state[kRoom][kArrays];
  void *new_param[kArrays], *new_state[kRoom][kArrays];
  void* copy[kArrays];
  int64_t size[kArrays];
  CopyType copy_type[kArrays];
  ChunkTable<kArrays> table;
};

// A table and its states, and the rows of them that are updated.
template <int kStates>
struct RowArrays {
  void *param, *state[kStates + (kStates == 0)];
  const void* grad;
  const int64_t* ids;
  int64_t rows, width, count;
};

// What a step multiplies with, and the formula of one element.
template <typename Update>
struct StepF32 {
  kernels::functors::f32::TrueGradient gradient;
  kernels::functors::f32::Formula<Update> formula;
  float trust;
};
template <typename Update>
struct StepF64 {
  kernels::functors::f64::TrueGradient gradient;
  kernels::functors::f64::Formula<Update> formula;
  double trust;
};
template <typename T, typename Update>
using StepOf = std::conditional_t<std::is_same_v<T, float>, StepF32<Update>, StepF64<Update>>;

template <typename T, typename Update>
__device__ void MakeStep(const Update& hyper, const UpdateScalars& s, StepOf<T, Update>* step) {
  step->gradient = {static_cast<T>(*s.inv_scale), static_cast<T>(*s.clip),
                    static_cast<T>(hyper.clip_value)};
  step->formula = decltype(step->formula)::Of(hyper, *s.lr, static_cast<double>(*s.step));
  step->trust = 1;
}

template <typename T>
__device__ T TrustOf(const UpdateSquares& squares) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels::functors::f32::TrustRatio(squares.param, squares.direction);
  } else {
    return kernels::functors::f64::TrustRatio(squares.param, squares.direction);
  }
}

// A block's part of one array, or one row of a table.
template <typename T, int kStates>
struct Chunk {
  static constexpr int kSlots = kStates > 0 ? kStates : 1;
  const T *param, *grad, *state[kSlots];
  T *new_param, *new_state[kSlots];
  void* copy;
  CopyType copy_type;
  int64_t size;

  __device__ Chunk(const UpdateBatch<kStates>& batch, int i, int64_t begin) {
    uintptr_t all = 0;
    const auto at = [&](const void* p) {
      all |= reinterpret_cast<uintptr_t>(p);
      return static_cast<const T*>(p) + begin;
    };
    param = at(batch.param[i]);
    grad = at(batch.grad[i]);
    new_param = const_cast<T*>(at(batch.new_param[i]));
#pragma unroll
    for (int s = 0; s < kStates; ++s) {
      state[s] = at(batch.state[s][i]);
      new_state[s] = const_cast<T*>(at(batch.new_state[s][i]));
    }
    copy_type = batch.copy_type[i];
    copy = copy_type == CopyType::kNone ? nullptr : static_cast<__half*>(batch.copy[i]) + begin;
    all |= reinterpret_cast<uintptr_t>(batch.copy[i]);
    aligned = all % 16 == 0;
    const int64_t rest = batch.size[i] - begin;
    size = rest < batch.kChunk ? rest : batch.kChunk;
  }
  // Row `id` of the tables, which gradient i is for.
  __device__ Chunk(const RowArrays<kStates>& a, int64_t id, int64_t i)
      : copy(nullptr), copy_type(CopyType::kNone), size(a.width), aligned(false) {
    param = new_param = static_cast<T*>(a.param) + id * a.width;
    grad = static_cast<const T*>(a.grad) + i * a.width;
#pragma unroll
    for (int s = 0; s < kStates; ++s) {
      state[s] = new_state[s] = static_cast<T*>(a.state[s]) + id * a.width;
    }
  }
  bool aligned;

  // Whether a skipped step leaves nothing to do.
  __device__ bool in_place() const {
    bool same = param == new_param && copy_type == CopyType::kNone;
#pragma unroll
    for (int s = 0; s < kStates; ++s) same = same && state[s] == new_state[s];
    return same;
  }
};

// Elements of a chunk, from `e` on, and what the formula makes of them: `result`, and the new states
// in place of the old. kSet: the states that there are; those of a chunk stand one after the other.
template <int N, unsigned kSet, typename Update, typename T>
struct Elements {
  static constexpr int kStates = kCountOf<kSet>, kAllStates = ops::StatesOf<Update>::kCount;
  T param[N], grad[N], state[Chunk<T, kStates>::kSlots][N], result[N];

  __device__ Elements(const Chunk<T, kStates>& c, int64_t e) {
    LoadPack(c.param + e, param);
    LoadPack(c.grad + e, grad);
#pragma unroll
    for (int s = 0; s < kStates; ++s) LoadPack(c.state[s] + e, state[s]);
  }

  __device__ void Apply(const StepOf<T, Update>& step) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      T of_element[kAllStates + 1] = {};
      int there = 0;
#pragma unroll
      for (int s = 0; s < kAllStates; ++s) {
        if ((kSet >> s & 1) != 0) of_element[s] = state[there++][i];
      }
      result[i] =
          step.formula.template operator()<kSet>(param[i], step.gradient(grad[i]), of_element);
      there = 0;
#pragma unroll
      for (int s = 0; s < kAllStates; ++s) {
        if ((kSet >> s & 1) != 0) state[there++][i] = of_element[s];
      }
    }
  }
};

template <int N, unsigned kSet, typename Update, typename T>
__device__ void AddSquares(const StepOf<T, Update>& step, const Chunk<T, kCountOf<kSet>>& c,
                           int64_t e, UpdateSquares* sum) {
  Elements<N, kSet, Update, T> elements(c, e);
  elements.Apply(step);
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const double param = elements.param[i], direction = elements.result[i];
    sum->param += param * param;
    sum->direction += direction * direction;
  }
}

template <int N, unsigned kSet, typename Update, typename T>
__device__ void UpdatePack(const StepOf<T, Update>& step, bool apply,
                           const Chunk<T, kCountOf<kSet>>& c, int64_t e) {
  Elements<N, kSet, Update, T> elements(c, e);
  if (apply) {
    elements.Apply(step);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      T& p = elements.param[i];
      if constexpr (ops::kHasTrustRatio<Update>) {
        p = step.formula.Step(p, elements.result[i], step.trust);
      } else {
        p = elements.result[i];
      }
    }
  }
  StorePack(elements.param, c.new_param + e);
#pragma unroll
  for (int s = 0; s < kCountOf<kSet>; ++s) StorePack(elements.state[s], c.new_state[s] + e);
  if (c.copy_type == CopyType::kF16) {
    StorePack(elements.param, static_cast<__half*>(c.copy) + e);
  } else if (c.copy_type == CopyType::kBF16) {
    StorePack(elements.param, static_cast<__nv_bfloat16*>(c.copy) + e);
  }
}

// Calls run(std::integral_constant<int, N>(), e) for the packs of N elements of a chunk that fall to
// this thread.
template <typename T, int kStates, typename Run>
__device__ void ForPacks(const Chunk<T, kStates>& chunk, const Run& run) {
  constexpr int kPack = kPackOf<T>;
  const int64_t packs = chunk.aligned ? chunk.size / kPack : 0;
  for (int64_t k = threadIdx.x; k < packs; k += kThreads) {
    run(std::integral_constant<int, kPack>(), k * kPack);
  }
  for (int64_t e = packs * kPack + threadIdx.x; e < chunk.size; e += kThreads) {
    run(std::integral_constant<int, 1>(), e);
  }
}

// The sums of squares of each chunk.
template <typename T, unsigned kSet, typename Update>
__global__ void __launch_bounds__(kThreads)
    SquaresKernel(Update hyper, UpdateScalars scalars, UpdateBatch<kCountOf<kSet>> batch,
                  UpdateSquares* of_chunk) {
  using Step = StepOf<T, Update>;
  if (scalars.state->fault_id != 0 || !*scalars.apply) return;
  const int i = ArrayOfChunk(batch.table, blockIdx.x);
  const Chunk<T, kCountOf<kSet>> chunk(
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
template <typename T, unsigned kSet, typename Update>
__global__ void __launch_bounds__(kThreads, 1)
    UpdateKernel(Update hyper, UpdateScalars scalars, UpdateBatch<kCountOf<kSet>> batch,
                 const UpdateSquares* of_array) {
  using Step = StepOf<T, Update>;
  if (scalars.state->fault_id != 0) return;
  const int i = ArrayOfChunk(batch.table, blockIdx.x);
  const Chunk<T, kCountOf<kSet>> chunk(
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

// The rows are all different, so that no two threads write one element.
template <typename T, unsigned kSet, typename Update, int N>
__global__ void __launch_bounds__(kRowThreads, 1)
    UpdateRowsKernel(Update hyper, UpdateScalars scalars, RowArrays<kCountOf<kSet>> a, int lanes) {
  using Step = StepOf<T, Update>;
  if (scalars.state->fault_id != 0 || !*scalars.apply) return;
  HT_SHARED(Step, shared_step, [1]);
  if (threadIdx.x == 0) MakeStep<T>(hyper, scalars, &shared_step[0]);
  __syncthreads();
  const Step step = shared_step[0];
  ForRowUnits(a.count, a.width / N, lanes, [&](int64_t i, int64_t unit) {
    const int64_t id = a.ids[i];
    if (id < 0 || id >= a.rows) return;
    const Chunk<T, kCountOf<kSet>> row(a, id, i);
    UpdatePack<N, kSet, Update>(step, true, row, unit * N);
  });
}

template <int kStates>
void AddMember(const UpdateGroup& group, size_t member, UpdateBatch<kStates>* batch) {
  const void* const* inputs = group.inputs + member * (UpdatePort::kFirstState + kStates);
  void* const* outputs = group.outputs + member * (1 + kStates);
  const int i = batch->table.count;
  batch->param[i] = inputs[UpdatePort::kParam];
  batch->grad[i] = inputs[UpdatePort::kGrad];
  batch->new_param[i] = outputs[0];
  for (int s = 0; s < kStates; ++s) {
    batch->state[s][i] = inputs[UpdatePort::kFirstState + s];
    batch->new_state[s][i] = outputs[1 + s];
  }
  batch->size[i] = group.members[member].size;
  batch->copy_type[i] = group.members[member].copy;
  if (batch->copy_type[i] != CopyType::kNone) batch->copy[i] = group.copies[member];
  batch->table.Add(batch->size[i], batch->kChunk);
}

// The sums of a batch, its arrays' in front. Batches run one after the other, so that each may have
// the same room.
template <unsigned kSet, typename Update, typename Batch>
cudaError_t LaunchSums(const Update& hyper, const UpdateScalars& scalars, const Batch& batch,
                       const UpdateGroup& group, bool f64, cudaStream_t stream) {
  UpdateSquares* const of_chunk = group.squares + batch.table.count;
  const auto kernel =
      f64 ? SquaresKernel<double, kSet, Update> : SquaresKernel<float, kSet, Update>;
  const cudaError_t error = LaunchKernel(kernel, batch.table.chunks(), kThreads, 0, stream, hyper,
                                         scalars, batch, of_chunk);
  if (error != cudaSuccess) return error;
  return LaunchKernel(TotalsKernel<Batch::kArrays>, static_cast<uint32_t>(batch.table.count),
                      kThreads, 0, stream, scalars, batch.table, of_chunk, group.squares);
}

UpdateScalars ScalarsOf(const void* const* inputs, const kernels::DeviceRunState* state) {
  return {static_cast<const float*>(inputs[UpdatePort::kLr]),
          static_cast<const float*>(inputs[UpdatePort::kInvScale]),
          static_cast<const float*>(inputs[UpdatePort::kClip]),
          static_cast<const bool*>(inputs[UpdatePort::kApply]),
          static_cast<const int64_t*>(inputs[UpdatePort::kStep]),
          state};
}

template <unsigned kSet, typename Update>
cudaError_t LaunchSet(const Update& hyper, const UpdateGroup& group, bool f64,
                      cudaStream_t stream) {
  using Batch = UpdateBatch<kCountOf<kSet>>;
  static_assert(sizeof(Update) + sizeof(UpdateScalars) + sizeof(Batch) + sizeof(void*) <= 4096);
  const UpdateScalars scalars = ScalarsOf(group.inputs, group.state);
  const auto kernel = f64 ? UpdateKernel<double, kSet, Update> : UpdateKernel<float, kSet, Update>;
  for (size_t next = 0; next < group.count;) {
    Batch batch{};
    for (; next < group.count; ++next) {
      if (!batch.table.HasRoom(group.members[next].size, batch.kChunk)) break;
      AddMember(group, next, &batch);
    }
    if (batch.table.chunks() == 0) continue;
    if constexpr (ops::kHasTrustRatio<Update>) {
      const cudaError_t error = LaunchSums<kSet>(hyper, scalars, batch, group, f64, stream);
      if (error != cudaSuccess) return error;
    }
    const cudaError_t error = LaunchKernel(kernel, batch.table.chunks(), kThreads, 0, stream, hyper,
                                           scalars, batch, group.squares);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

template <typename T, unsigned kSet, typename Update>
cudaError_t LaunchRows(const Update& hyper, const RowUpdate& update, cudaStream_t stream) {
  static_assert(!ops::kHasTrustRatio<Update>, "a ratio is of the whole tensor");
  constexpr int kStates = kCountOf<kSet>;
  RowArrays<kStates> arrays{};
  uintptr_t all = 0;
  const auto aligned = [&all](auto* p) {
    all |= reinterpret_cast<uintptr_t>(p);
    return p;
  };
  arrays.param = aligned(update.outputs[0]);
  for (int s = 0; s < kStates; ++s) arrays.state[s] = aligned(update.outputs[1 + s]);
  arrays.grad = aligned(update.inputs[UpdatePort::kGrad]);
  arrays.ids = static_cast<const int64_t*>(update.inputs[ops::RowUpdatePort::kIds]);
  arrays.rows = update.rows;
  arrays.width = update.width;
  arrays.count = update.count;
  constexpr int kPack = kPackOf<T>;
  const bool packs = update.width % kPack == 0 && all % 16 == 0;
  const RowGroups groups(update.count, packs ? update.width / kPack : update.width);
  return LaunchKernel(
      packs ? UpdateRowsKernel<T, kSet, Update, kPack> : UpdateRowsKernel<T, kSet, Update, 1>,
      groups.grid, kRowThreads, 0, stream, hyper, ScalarsOf(update.inputs, update.state), arrays,
      groups.lanes);
}

}  // namespace

#define HT_ROW_WISE(Name, ...)                                                                   \
  cudaError_t LaunchRowUpdate(const ops::Name##Update& hyper, const RowUpdate& update, bool f64, \
                              cudaStream_t stream) {                                             \
    if (update.count * update.width == 0) return cudaSuccess;                                    \
    return ops::WithStates<ops::Name##Update>(StateSet(hyper), [&](auto set) {                   \
      constexpr unsigned kSet = decltype(set)::value;                                            \
      return f64 ? LaunchRows<double, kSet>(hyper, update, stream)                               \
                 : LaunchRows<float, kSet>(hyper, update, stream);                               \
    });                                                                                          \
  }
#include "halftone/graph/ops/support/optimizers.def"
#define HT_UPDATE(Name, ...)                                                                   \
  cudaError_t LaunchUpdate(const ops::Name##Update& hyper, const UpdateGroup& group, bool f64, \
                           cudaStream_t stream) {                                              \
    return ops::WithStates<ops::Name##Update>(StateSet(hyper), [&](auto set) {                 \
      return LaunchSet<decltype(set)::value>(hyper, group, f64, stream);                       \
    });                                                                                        \
  }
#include "halftone/graph/ops/support/optimizers.def"

}  // namespace halftone::cuda
