// Algorithm: elementwise, many arrays a launch. Each array is cut into chunks of 4,096 elements; a
// block of 256 threads takes a chunk, whose array it finds by bisection of the chunk table in the
// parameters. What depends on the scalar operands alone (Adam's bias corrections, in f64) is
// computed by the block's first thread.
// Accesses: 16 bytes a thread where all of an array's pointers are aligned, one element elsewhere
// and in the tail. Formulas and order of operations: those of the CPU (optimizer_formulas.inc).
// Shared bytes: one Step (at most 96). Bound: memory. Bytes moved: each input once and each output
// once, the minimum: 28 an f32 element of Adam, and 2 for a 16-bit copy.
#include "halftone/kernels/cuda/device/chunk_table.h"
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
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
  static constexpr int64_t kChunk = 4096;                 // elements of a block
  static constexpr int kRoom = kStates + (kStates == 0);  // no array is empty

  const void *param[kArrays], *grad[kArrays], *state[kRoom][kArrays];
  void *new_param[kArrays], *new_state[kRoom][kArrays];
  void* copy[kArrays];
  int64_t size[kArrays];
  CopyType copy_type[kArrays];
  ChunkTable<kArrays> table;
};

// What a step multiplies with, and the formula of one element.
template <typename Update>
struct StepF32 {
  kernels::functors::f32::TrueGradient gradient;
  kernels::functors::f32::Formula<Update> formula;
};
template <typename Update>
struct StepF64 {
  kernels::functors::f64::TrueGradient gradient;
  kernels::functors::f64::Formula<Update> formula;
};
template <typename T, typename Update>
using StepOf = std::conditional_t<std::is_same_v<T, float>, StepF32<Update>, StepF64<Update>>;

template <typename T, typename Update>
__device__ void MakeStep(const Update& hyper, const UpdateScalars& s, StepOf<T, Update>* step) {
  step->gradient = {static_cast<T>(*s.inv_scale), static_cast<T>(*s.clip),
                    static_cast<T>(hyper.clip_value)};
  step->formula = decltype(step->formula)::Of(hyper, *s.lr, static_cast<double>(*s.step));
}

// A block's part of one array.
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
  bool aligned;

  // Whether a skipped step leaves nothing to do.
  __device__ bool in_place() const {
    bool same = param == new_param && copy_type == CopyType::kNone;
#pragma unroll
    for (int s = 0; s < kStates; ++s) same = same && state[s] == new_state[s];
    return same;
  }
};

// kSet: the states that there are; those of a chunk stand one after the other.
template <int N, unsigned kSet, typename Update, typename T>
__device__ void UpdatePack(const StepOf<T, Update>& step, bool apply,
                           const Chunk<T, kCountOf<kSet>>& c, int64_t e) {
  constexpr int kStates = kCountOf<kSet>, kAllStates = ops::StatesOf<Update>::kCount;
  T p[N], g[N], state[Chunk<T, kStates>::kSlots][N];
  LoadPack(c.param + e, p);
  LoadPack(c.grad + e, g);
#pragma unroll
  for (int s = 0; s < kStates; ++s) LoadPack(c.state[s] + e, state[s]);
  if (apply) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      T of_element[kAllStates + 1] = {};
      int there = 0;
#pragma unroll
      for (int s = 0; s < kAllStates; ++s) {
        if ((kSet >> s & 1) != 0) of_element[s] = state[there++][i];
      }
      p[i] = step.formula.template operator()<kSet>(p[i], step.gradient(g[i]), of_element);
      there = 0;
#pragma unroll
      for (int s = 0; s < kAllStates; ++s) {
        if ((kSet >> s & 1) != 0) state[there++][i] = of_element[s];
      }
    }
  }
  StorePack(p, c.new_param + e);
#pragma unroll
  for (int s = 0; s < kStates; ++s) StorePack(state[s], c.new_state[s] + e);
  if (c.copy_type == CopyType::kF16) {
    StorePack(p, static_cast<__half*>(c.copy) + e);
  } else if (c.copy_type == CopyType::kBF16) {
    StorePack(p, static_cast<__nv_bfloat16*>(c.copy) + e);
  }
}

template <typename T, unsigned kSet, typename Update>
__global__ void __launch_bounds__(kThreads)
    UpdateKernel(Update hyper, UpdateScalars scalars, UpdateBatch<kCountOf<kSet>> batch) {
  using Step = StepOf<T, Update>;
  if (scalars.state->fault_id != 0) return;
  const int i = ArrayOfChunk(batch.table, blockIdx.x);
  const Chunk<T, kCountOf<kSet>> chunk(
      batch, i, static_cast<int64_t>(blockIdx.x - batch.table.first[i]) * batch.kChunk);
  const bool apply = *scalars.apply;
  if (!apply && chunk.in_place()) return;
  HT_SHARED(Step, shared_step, [1]);
  if (threadIdx.x == 0) MakeStep<T>(hyper, scalars, &shared_step[0]);
  __syncthreads();
  const Step step = shared_step[0];
  constexpr int kPack = kPackOf<T>;
  const int64_t packs = chunk.aligned ? chunk.size / kPack : 0;
  for (int64_t k = threadIdx.x; k < packs; k += kThreads) {
    UpdatePack<kPack, kSet, Update>(step, apply, chunk, k * kPack);
  }
  for (int64_t e = packs * kPack + threadIdx.x; e < chunk.size; e += kThreads) {
    UpdatePack<1, kSet, Update>(step, apply, chunk, e);
  }
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

template <unsigned kSet, typename Update>
cudaError_t LaunchSet(const Update& hyper, const UpdateGroup& group, bool f64,
                      cudaStream_t stream) {
  using Batch = UpdateBatch<kCountOf<kSet>>;
  static_assert(sizeof(Update) + sizeof(UpdateScalars) + sizeof(Batch) <= 4096);
  const UpdateScalars scalars{static_cast<const float*>(group.inputs[UpdatePort::kLr]),
                              static_cast<const float*>(group.inputs[UpdatePort::kInvScale]),
                              static_cast<const float*>(group.inputs[UpdatePort::kClip]),
                              static_cast<const bool*>(group.inputs[UpdatePort::kApply]),
                              static_cast<const int64_t*>(group.inputs[UpdatePort::kStep]),
                              group.state};
  const auto kernel = f64 ? UpdateKernel<double, kSet, Update> : UpdateKernel<float, kSet, Update>;
  for (size_t next = 0; next < group.count;) {
    Batch batch{};
    for (; next < group.count; ++next) {
      if (!batch.table.HasRoom(group.members[next].size, batch.kChunk)) break;
      AddMember(group, next, &batch);
    }
    if (batch.table.chunks() == 0) continue;
    const cudaError_t error =
        LaunchKernel(kernel, batch.table.chunks(), kThreads, 0, stream, hyper, scalars, batch);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace

#define HT_UPDATE(Name, ...)                                                                   \
  cudaError_t LaunchUpdate(const ops::Name##Update& hyper, const UpdateGroup& group, bool f64, \
                           cudaStream_t stream) {                                              \
    return ops::WithStates<ops::Name##Update>(StateSet(hyper), [&](auto set) {                 \
      return LaunchSet<decltype(set)::value>(hyper, group, f64, stream);                       \
    });                                                                                        \
  }
#include "halftone/graph/ops/support/optimizers.def"

}  // namespace halftone::cuda
