// Algorithm: elementwise, many arrays a launch. Each array is cut into chunks of 4,096 elements; a
// block of 256 threads takes a chunk, whose array it finds by bisection of the chunk table in the
// parameters. What depends on the scalar operands alone (Adam's bias corrections, in f64) is
// computed by the block's first thread.
// Accesses: 16 bytes a thread where all of an array's pointers are aligned, one element elsewhere
// and in the tail. Formulas and order of operations: as on the CPU (PyTorch's single-tensor SGD and
// Adam; the op records give the pages).
// Shared bytes: one Step (at most 96). Bound: memory. Bytes moved: each input once and each output
// once, the minimum: 28 an f32 element of Adam, and 2 for a 16-bit copy.
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/ops/optimizer.h"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 256;

// What a step multiplies with. `inv_scale` and `clip` are two factors, so that the gradient is
// rounded as the record says.
template <typename T>
struct SgdStep {
  T lr, inv_scale, clip, clip_value, momentum, one_minus_dampening, weight_decay;
  bool nesterov, first;
};

template <typename T>
struct AdamStep {
  T inv_scale, clip, clip_value, one_minus_beta1, beta2, one_minus_beta2, eps;
  T weight_decay;  // added to the gradient; 0 when decoupled
  T decay;         // the parameter is multiplied by it; 1 unless decoupled
  T step_size, root_correction;
};

template <typename T>
__device__ void MakeStep(const SgdRule& rule, const UpdateScalars& s, SgdStep<T>* step) {
  step->lr = *s.lr;
  step->inv_scale = *s.inv_scale;
  step->clip = *s.clip;
  step->clip_value = static_cast<T>(rule.clip_value);
  step->momentum = static_cast<T>(rule.momentum);
  step->one_minus_dampening = static_cast<T>(1 - rule.dampening);
  step->weight_decay = static_cast<T>(rule.weight_decay);
  step->nesterov = rule.nesterov;
  step->first = *s.step == 1;
}

template <typename T>
__device__ void MakeStep(const AdamRule& rule, const UpdateScalars& s, AdamStep<T>* step) {
  const double lr = *s.lr, t = static_cast<double>(*s.step);
  step->inv_scale = *s.inv_scale;
  step->clip = *s.clip;
  step->clip_value = static_cast<T>(rule.clip_value);
  step->one_minus_beta1 = static_cast<T>(1 - rule.beta1);
  step->beta2 = static_cast<T>(rule.beta2);
  step->one_minus_beta2 = static_cast<T>(1 - rule.beta2);
  step->eps = static_cast<T>(rule.eps);
  step->weight_decay = rule.decoupled ? T{0} : static_cast<T>(rule.weight_decay);
  step->decay = rule.decoupled ? static_cast<T>(1 - lr * rule.weight_decay) : T{1};
  step->step_size = static_cast<T>(lr / (1 - pow(rule.beta1, t)));
  step->root_correction = static_cast<T>(sqrt(1 - pow(rule.beta2, t)));
}

// The gradient unscaled and clipped; NaN passes.
template <typename Step, typename T>
__device__ T TrueGradient(const Step& s, T scaled) {
  const T g = scaled * s.inv_scale * s.clip;
  if (s.clip_value <= 0) return g;
  return g > s.clip_value ? s.clip_value : g < -s.clip_value ? -s.clip_value : g;
}

// The new parameter, and the new states in place of the old.
template <typename T>
__device__ T Update(const SgdStep<T>& s, T p, T g, T (&)[1], std::integral_constant<int, 0>) {
  g = TrueGradient(s, g);
  if (s.weight_decay != 0) g = g + s.weight_decay * p;
  return p - s.lr * g;
}

template <typename T>
__device__ T Update(const SgdStep<T>& s, T p, T g, T (&state)[1], std::integral_constant<int, 1>) {
  g = TrueGradient(s, g);
  if (s.weight_decay != 0) g = g + s.weight_decay * p;
  const T buffer = s.first ? g : s.momentum * state[0] + s.one_minus_dampening * g;
  state[0] = buffer;
  return p - s.lr * (s.nesterov ? g + s.momentum * buffer : buffer);
}

template <typename T>
__device__ T Update(const AdamStep<T>& s, T p, T g, T (&state)[2], std::integral_constant<int, 2>) {
  g = TrueGradient(s, g);
  if (s.weight_decay != 0) g = g + s.weight_decay * p;
  if (s.decay != 1) p = p * s.decay;
  const T m = state[0] + s.one_minus_beta1 * (g - state[0]);
  const T v = state[1] * s.beta2 + s.one_minus_beta2 * (g * g);
  state[0] = m;
  state[1] = v;
  return p - s.step_size * (m / (sqrt(v) / s.root_correction + s.eps));
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

template <int N, int kStates, typename Step, typename T>
__device__ void UpdatePack(const Step& step, bool apply, const Chunk<T, kStates>& c, int64_t e) {
  T p[N], g[N], state[Chunk<T, kStates>::kSlots][N];
  LoadPack(c.param + e, p);
  LoadPack(c.grad + e, g);
#pragma unroll
  for (int s = 0; s < kStates; ++s) LoadPack(c.state[s] + e, state[s]);
  if (apply) {
#pragma unroll
    for (int i = 0; i < N; ++i) {
      T of_element[Chunk<T, kStates>::kSlots] = {};
#pragma unroll
      for (int s = 0; s < kStates; ++s) of_element[s] = state[s][i];
      p[i] = Update(step, p[i], g[i], of_element, std::integral_constant<int, kStates>());
#pragma unroll
      for (int s = 0; s < kStates; ++s) state[s][i] = of_element[s];
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

template <typename T, template <typename> typename Step, int kStates, typename Rule>
__global__ void __launch_bounds__(kThreads)
    UpdateKernel(Rule rule, UpdateScalars scalars, UpdateBatch<kStates> batch) {
  if (scalars.state->fault_id != 0) return;
  const int i = ArrayOfChunk(batch.table, blockIdx.x);
  const Chunk<T, kStates> chunk(
      batch, i, static_cast<int64_t>(blockIdx.x - batch.table.first[i]) * batch.kChunk);
  const bool apply = *scalars.apply;
  if (!apply && chunk.in_place()) return;
  HT_SHARED(Step<T>, shared_step, [1]);
  if (threadIdx.x == 0) MakeStep(rule, scalars, &shared_step[0]);
  __syncthreads();
  const Step<T> step = shared_step[0];
  constexpr int kPack = kPackOf<T>;
  const int64_t packs = chunk.aligned ? chunk.size / kPack : 0;
  for (int64_t k = threadIdx.x; k < packs; k += kThreads) {
    UpdatePack<kPack>(step, apply, chunk, k * kPack);
  }
  for (int64_t e = packs * kPack + threadIdx.x; e < chunk.size; e += kThreads) {
    UpdatePack<1>(step, apply, chunk, e);
  }
}

template <template <typename> typename Step, int kStates, typename Rule>
cudaError_t Launch(const Rule& rule, const UpdateScalars& scalars,
                   const UpdateBatch<kStates>& batch, bool f64, cudaStream_t stream) {
  static_assert(sizeof(rule) + sizeof(scalars) + sizeof(batch) <= 4096);
  if (batch.table.chunks() == 0) return cudaSuccess;
  const auto kernel =
      f64 ? UpdateKernel<double, Step, kStates, Rule> : UpdateKernel<float, Step, kStates, Rule>;
  return LaunchKernel(kernel, batch.table.chunks(), kThreads, 0, stream, rule, scalars, batch);
}

}  // namespace

cudaError_t LaunchSgd(const SgdRule& rule, const UpdateScalars& scalars,
                      const UpdateBatch<0>& batch, bool f64, cudaStream_t stream) {
  return Launch<SgdStep>(rule, scalars, batch, f64, stream);
}
cudaError_t LaunchSgd(const SgdRule& rule, const UpdateScalars& scalars,
                      const UpdateBatch<1>& batch, bool f64, cudaStream_t stream) {
  return Launch<SgdStep>(rule, scalars, batch, f64, stream);
}
cudaError_t LaunchAdam(const AdamRule& rule, const UpdateScalars& scalars,
                       const UpdateBatch<2>& batch, bool f64, cudaStream_t stream) {
  return Launch<AdamStep>(rule, scalars, batch, f64, stream);
}

}  // namespace halftone::cuda
