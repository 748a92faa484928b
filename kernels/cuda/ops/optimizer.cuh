// What the updates of whole arrays and those of rows share: their operands, a part of one array, and
// the formula of its elements with how they are stored.
#pragma once

#include "halftone/kernels/cuda/device/chunk_table.h"
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/pack.cuh"
#include "halftone/kernels/cuda/device/philox.cuh"
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

namespace halftone::cuda::updates {

using ops::UpdatePort;

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
__device__ inline uint32_t WordOf(const PhiloxWords& words, int i) {
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
inline UpdateScalars ScalarsOf(const void* const* inputs, const kernels::DeviceRunState* state) {
  return {static_cast<const float*>(inputs[UpdatePort::kLr]),
          static_cast<const float*>(inputs[UpdatePort::kInvScale]),
          static_cast<const float*>(inputs[UpdatePort::kClip]),
          static_cast<const bool*>(inputs[UpdatePort::kApply]),
          static_cast<const int64_t*>(inputs[UpdatePort::kStep]),
          state};
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

}  // namespace halftone::cuda::updates
