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
// Updates of rows: one table, mapping as in row_groups.cuh, the same accesses. Bytes moved: of the
// tables the rows that are updated, once each way.
#include "halftone/kernels/cuda/device/chunk_table.h"
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/philox.cuh"
#include "halftone/kernels/cuda/device/reduce.cuh"
#include "halftone/kernels/cuda/device/row_groups.cuh"
#include "halftone/kernels/cuda/ops/optimizer.h"
#include "halftone/kernels/update_rounding.h"

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

// Of stored type S, how many arrays there may be for an update of `kStates` states: bf16 has a
// compensation behind them.
template <typename S>
inline constexpr bool kIsLow = std::is_same_v<S, __nv_bfloat16>;
template <typename S, int kStates>
inline constexpr int kSlotsOf = kStates + (kIsLow<S> || kStates == 0);  // no array is empty

struct Rounding {
  ops::UpdateRounding how;
  __device__ bool kahan() const { return how == ops::UpdateRounding::kKahan; }
};

// The arrays of one launch, and of each parameter its states. A batch is as large as 4 KiB of
// parameters allow, less what else a kernel is told.
template <typename S, int kStates>
struct UpdateBatch {
  static constexpr int kRoom = kSlotsOf<S, kStates>;
  static constexpr int kArrays =
      (4096 - 400) / (8 * (4 + 2 * kRoom) + 8 + 1 + 4 + (kIsLow<S> ? 8 : 0));
  static constexpr int64_t kChunk = kUpdateChunk;

  const void *param[kArrays], *grad[kArrays], *state[kRoom][kArrays];
  void *new_param[kArrays], *new_state[kRoom][kArrays];
  void* copy[kArrays];
  int64_t size[kArrays];
  uint64_t seed[kIsLow<S> ? kArrays : 1];
  CopyType copy_type[kArrays];
  ChunkTable<kArrays> table;
  Rounding rounding;
};

// A table and its states, and the rows of them that are updated.
template <typename S, int kStates>
struct RowArrays {
  void *param, *state[kSlotsOf<S, kStates>];
  const void* grad;
  const int64_t* ids;
  int64_t rows, width, count;
  uint64_t seed;
  Rounding rounding;
};

// What a step multiplies with, and the formula of one element.
template <typename Update>
struct StepF32 {
  kernels::functors::f32::TrueGradient gradient;
  kernels::functors::f32::Formula<Update> formula;
  float trust;
  uint64_t number;  // of the step
};
template <typename Update>
struct StepF64 {
  kernels::functors::f64::TrueGradient gradient;
  kernels::functors::f64::Formula<Update> formula;
  double trust;
  uint64_t number;
};
template <typename T, typename Update>
using StepOf = std::conditional_t<std::is_same_v<T, float>, StepF32<Update>, StepF64<Update>>;

template <typename T, typename Update>
__device__ void MakeStep(const Update& hyper, const UpdateScalars& s, StepOf<T, Update>* step) {
  step->gradient = {static_cast<T>(*s.inv_scale), static_cast<T>(*s.clip),
                    static_cast<T>(hyper.clip_value)};
  step->formula = decltype(step->formula)::Of(hyper, *s.lr, static_cast<double>(*s.step));
  step->trust = 1;
  step->number = static_cast<uint64_t>(*s.step);
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
template <typename S, int kStates>
struct Chunk {
  static constexpr int kSlots = kSlotsOf<S, kStates>;
  const S *param, *grad, *state[kSlots];
  S *new_param, *new_state[kSlots];
  void* copy;
  CopyType copy_type;
  Rounding rounding;
  int slots;  // in use
  int64_t size;
  int64_t first;  // number of the first element in its array
  uint64_t seed;

  __device__ Chunk(const UpdateBatch<S, kStates>& batch, int i, int64_t begin)
      : rounding(batch.rounding),
        slots(kStates + batch.rounding.kahan()),
        first(begin),
        seed(kIsLow<S> ? batch.seed[i] : 0) {
    uintptr_t all = 0;
    const auto at = [&](const void* p) {
      all |= reinterpret_cast<uintptr_t>(p);
      return static_cast<const S*>(p) + begin;
    };
    param = at(batch.param[i]);
    grad = at(batch.grad[i]);
    new_param = const_cast<S*>(at(batch.new_param[i]));
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      if (s >= slots) continue;
      state[s] = at(batch.state[s][i]);
      new_state[s] = const_cast<S*>(at(batch.new_state[s][i]));
    }
    copy_type = batch.copy_type[i];
    copy = copy_type == CopyType::kNone ? nullptr : static_cast<__half*>(batch.copy[i]) + begin;
    all |= reinterpret_cast<uintptr_t>(batch.copy[i]);
    aligned = all % 16 == 0;
    const int64_t rest = batch.size[i] - begin;
    size = rest < batch.kChunk ? rest : batch.kChunk;
  }
  // Row `id` of the tables, which gradient i is for.
  __device__ Chunk(const RowArrays<S, kStates>& a, int64_t id, int64_t i)
      : copy(nullptr),
        copy_type(CopyType::kNone),
        rounding(a.rounding),
        slots(kStates + a.rounding.kahan()),
        size(a.width),
        first(id * a.width),
        seed(a.seed),
        aligned(false) {
    param = new_param = static_cast<S*>(a.param) + first;
    grad = static_cast<const S*>(a.grad) + i * a.width;
#pragma unroll
    for (int s = 0; s < kSlots; ++s) {
      if (s < slots) state[s] = new_state[s] = static_cast<S*>(a.state[s]) + first;
    }
  }
  bool aligned;

  // Whether a skipped step leaves nothing to do.
  __device__ bool in_place() const {
    bool same = param == new_param && copy_type == CopyType::kNone;
#pragma unroll
    for (int s = 0; s < kSlots; ++s) same = same && (s >= slots || state[s] == new_state[s]);
    return same;
  }
};

// Word i. By comparison, since an index that is not known takes the words out of registers.
__device__ uint32_t WordOf(const PhiloxWords& words, int i) {
  const uint32_t low = (i & 1) != 0 ? words.v[1] : words.v[0];
  const uint32_t high = (i & 1) != 0 ? words.v[3] : words.v[2];
  return (i & 2) != 0 ? high : low;
}

// Elements of a chunk, from `e` on, and what the formula makes of them: `result`, and the new states
// in place of the old. kSet: the states that there are; those of a chunk stand one after the other.
template <int N, unsigned kSet, typename Update, typename S>
struct Elements {
  using T = Compute<S>;
  static constexpr int kStates = kCountOf<kSet>, kAllStates = ops::StatesOf<Update>::kCount;
  T param[N], grad[N], state[Chunk<S, kStates>::kSlots][N], result[N];

  __device__ Elements(const Chunk<S, kStates>& c, int64_t e) {
    LoadPack(c.param + e, param);
    LoadPack(c.grad + e, grad);
#pragma unroll
    for (int s = 0; s < kStates; ++s) LoadPack(c.state[s] + e, state[s]);
    if constexpr (kIsLow<S>) {
      if (c.rounding.kahan()) LoadPack(c.state[kStates] + e, state[kStates]);
    }
  }

  __device__ void Apply(const StepOf<T, Update>& step, Rounding rounding) {
    if constexpr (kIsLow<S>) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        if (rounding.kahan()) param[i] = kernels::Compensated(param[i], state[kStates][i]);
      }
    }
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

  // Of bf16: brings what is stored of elements `e` on to numbers that bf16 has.
  __device__ void Round(const StepOf<T, Update>& step, const Chunk<S, kStates>& c, int64_t e) {
    int first = 0;
    if (c.rounding.kahan()) {
      first = 1;
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const float kept = Widen(Narrow<S>(param[i]));
        state[kStates][i] = kernels::LostOf(param[i], kept);
        param[i] = kept;
      }
    }
    PhiloxWords words{};
#pragma unroll
    for (int r = 0; r < 1 + kStates; ++r) {
#pragma unroll
      for (int i = 0; i < N; ++i) {
        const int64_t element = c.first + e + i;
        if (r < first) continue;
        if (i % 4 == 0)
          words = PhiloxBlock(c.seed, step.number, kernels::RoundingGroup(r, element));
        T& x = r == 0 ? param[i] : state[r - 1][i];
        const uint32_t random =
            kernels::RoundingBits(WordOf(words, static_cast<int>(element % 4)), r);
        x = BitsOf<float>(static_cast<uint32_t>(kernels::RoundStochastically(x, random)) << 16);
      }
    }
  }
};

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

// Bit for bit: a NaN of bf16 would become another on its way through f32.
template <int N, typename S>
__device__ void CopyPack(const S* from, S* to) {
  StoreWhole(*reinterpret_cast<const Pack<S, N>*>(from), to);
}

template <int N, unsigned kSet, typename Update, typename S>
__device__ void UpdatePack(const StepOf<Compute<S>, Update>& step, bool apply,
                           const Chunk<S, kCountOf<kSet>>& c, int64_t e) {
  Elements<N, kSet, Update, S> elements(c, e);
  if (apply) {
    elements.Apply(step, c.rounding);
#pragma unroll
    for (int i = 0; i < N; ++i) {
      Compute<S>& p = elements.param[i];
      if constexpr (ops::kHasTrustRatio<Update>) {
        p = step.formula.Step(p, elements.result[i], step.trust);
      } else {
        p = elements.result[i];
      }
    }
    if constexpr (kIsLow<S>) elements.Round(step, c, e);
    StorePack(elements.param, c.new_param + e);
#pragma unroll
    for (int s = 0; s < c.kSlots; ++s) {
      if (s < c.slots) StorePack(elements.state[s], c.new_state[s] + e);
    }
  } else {
    CopyPack<N>(c.param + e, c.new_param + e);
#pragma unroll
    for (int s = 0; s < c.kSlots; ++s) {
      if (s < c.slots) CopyPack<N>(c.state[s] + e, c.new_state[s] + e);
    }
  }
  if (c.copy_type == CopyType::kF16) {
    StorePack(elements.param, static_cast<__half*>(c.copy) + e);
  } else if (c.copy_type == CopyType::kBF16) {
    StorePack(elements.param, static_cast<__nv_bfloat16*>(c.copy) + e);
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

UpdateScalars ScalarsOf(const void* const* inputs, const kernels::DeviceRunState* state) {
  return {static_cast<const float*>(inputs[UpdatePort::kLr]),
          static_cast<const float*>(inputs[UpdatePort::kInvScale]),
          static_cast<const float*>(inputs[UpdatePort::kClip]),
          static_cast<const bool*>(inputs[UpdatePort::kApply]),
          static_cast<const int64_t*>(inputs[UpdatePort::kStep]),
          state};
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

// launch(S()) for the stored type.
template <typename Launch>
cudaError_t ForStored(DType dtype, const Launch& launch) {
  switch (dtype) {
    case DType::kF64:
      return launch(double());
    case DType::kBF16:
      return launch(__nv_bfloat16());
    default:
      return launch(float());
  }
}

}  // namespace

#define HT_ROW_WISE(Name, ...)                                                              \
  cudaError_t LaunchRowUpdate(const ops::Name##Update& hyper, const RowUpdate& update,      \
                              const UpdateStorage& storage, cudaStream_t stream) {          \
    if (update.count * update.width == 0) return cudaSuccess;                               \
    return ops::WithStates<ops::Name##Update>(StateSet(hyper), [&](auto set) {              \
      constexpr unsigned kSet = decltype(set)::value;                                       \
      return ForStored(storage.dtype, [&](auto zero) {                                      \
        return LaunchRows<decltype(zero), kSet>(hyper, update, {storage.rounding}, stream); \
      });                                                                                   \
    });                                                                                     \
  }
#include "halftone/graph/ops/support/optimizers.def"
#define HT_UPDATE(Name, ...)                                                              \
  cudaError_t LaunchUpdate(const ops::Name##Update& hyper, const UpdateGroup& group,      \
                           const UpdateStorage& storage, cudaStream_t stream) {           \
    return ops::WithStates<ops::Name##Update>(StateSet(hyper), [&](auto set) {            \
      constexpr unsigned kSet = decltype(set)::value;                                     \
      return ForStored(storage.dtype, [&](auto zero) {                                    \
        return LaunchSet<decltype(zero), kSet>(hyper, group, {storage.rounding}, stream); \
      });                                                                                 \
    });                                                                                   \
  }
#include "halftone/graph/ops/support/optimizers.def"

}  // namespace halftone::cuda
