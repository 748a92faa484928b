// A tree of elementwise ops.
//
// Algorithm: a thread computes 4 neighbours, a block 1,024. It walks the program step by step, alike in all
// threads, with the result of the last step in registers; a result that another step has to wait for
// lies in shared memory. Each step computes in f32 and rounds to its dtype, so that every element has
// the bits of the ops one by one. Dynamic shared bytes: 4 KiB a slot, none for a chain. Bound:
// memory; arithmetic where several steps call functions. Bytes moved: each input and the result once, the
// minimum; an input of several steps comes from the caches again.
#include "halftone/kernels/cuda/device/functors.cuh"
#include "halftone/kernels/cuda/device/map.cuh"
#include "halftone/kernels/cuda/device/wide_divisor.cuh"
#include "halftone/kernels/cuda/ops/fused.h"

namespace halftone::cuda {
namespace {

namespace f32 = kernels::functors::f32;

constexpr int kFusedThreads = 256;
constexpr int kFusedElements = 4;  // of a thread

// y = f(a) or f(a, b) of whole numbers, which bools are here.
template <typename F, int W>
__device__ __forceinline__ void ApplyLogical(const float (&a)[W], const float (&b)[W],
                                             float (&y)[W]) {
#pragma unroll
  for (int i = 0; i < W; ++i) {
    const int left = a[i] != 0.0f, right = b[i] != 0.0f;
    if constexpr (std::is_invocable_v<F, int, int>) {
      y[i] = F()(left, right) ? 1.0f : 0.0f;
    } else {
      y[i] = F()(left) ? 1.0f : 0.0f;
    }
  }
}

template <typename F, int W>
__device__ __forceinline__ void ApplyFormula(const float* numbers, const float (&a)[W],
                                             const float (&b)[W], float (&y)[W]) {
  const F f = f32::With<F>(numbers[0], numbers[1]);
#pragma unroll
  for (int i = 0; i < W; ++i) {
    if constexpr (std::is_invocable_v<F, float, float>) {
      y[i] = static_cast<float>(f(a[i], b[i]));
    } else {
      y[i] = static_cast<float>(f(a[i]));
    }
  }
}

template <int W>
__device__ __forceinline__ void Compute(Formula formula, const float* numbers, const float (&a)[W],
                                        const float (&b)[W], float (&y)[W]) {
#define HT_APPLY(Name)                               \
  case Formula::k##Name:                             \
    ApplyFormula<f32::Name##F, W>(numbers, a, b, y); \
    return;
#define HT_APPLY_LOGICAL(op, Name, ...)                \
  case Formula::k##Name:                               \
    ApplyLogical<kernels::whole::Name##F, W>(a, b, y); \
    return;
  switch (formula) {
#define HT_UNARY(op, Name, ...) HT_APPLY(Name)
#define HT_PREDICATE HT_UNARY
#define HT_GRADIENT HT_UNARY
#define HT_BINARY HT_UNARY
#define HT_SCALAR_BINARY HT_UNARY
#define HT_COMPARE HT_UNARY
#define HT_APPROXIMABLE(op, ByErf, ByTanh, ...) HT_APPLY(ByErf) HT_APPLY(ByTanh)
#define HT_APPROXIMABLE_GRADIENT HT_APPROXIMABLE
#define HT_LOGICAL HT_APPLY_LOGICAL
#define HT_LOGICAL_UNARY HT_APPLY_LOGICAL
#include "halftone/graph/ops/support/elementwise.def"
    default:  // kIdentity
#pragma unroll
      for (int i = 0; i < W; ++i) y[i] = a[i];
  }
#undef HT_APPLY
#undef HT_APPLY_LOGICAL
}

// As a store and a load would.
template <int W>
__device__ __forceinline__ void Round(DType dtype, float (&y)[W]) {
  if (dtype == DType::kF32) return;
#pragma unroll
  for (int i = 0; i < W; ++i) {
    if (dtype == DType::kF16) {
      y[i] = Widen(Narrow<__half>(y[i]));
    } else if (dtype == DType::kBF16) {
      y[i] = Widen(Narrow<__nv_bfloat16>(y[i]));
    } else {
      y[i] = y[i] != 0.0f ? 1.0f : 0.0f;
    }
  }
}

// A thread's place in a slot: neighbouring threads have neighbouring words.
__device__ __forceinline__ float& SlotElement(float* slots, int slot, int i) {
  return slots[(slot * kFusedElements + i) * kFusedThreads + static_cast<int>(threadIdx.x)];
}

template <int W>
__device__ __forceinline__ void Fetch(const FusedParams& p, const float* slots,
                                      const FusedOperand& operand, int64_t position,
                                      const float (&last)[W], float (&v)[W]) {
  if (operand.kind == FusedOperand::Kind::kLast) {
#pragma unroll
    for (int i = 0; i < W; ++i) v[i] = last[i];
    return;
  }
  if (operand.kind == FusedOperand::Kind::kSlot) {
#pragma unroll
    for (int i = 0; i < W; ++i) v[i] = SlotElement(const_cast<float*>(slots), operand.index, i);
    return;
  }
  const FusedInput& input = p.input[operand.index];
  int64_t at = position;
  if (input.reach == FusedReach::kRow) at = Divide(position, p.period).rest;
  if (input.reach == FusedReach::kOne) at = 0;
  LoadValues<W, /*kBytes=*/true>(input.x, input.dtype, at, input.reach != FusedReach::kOne, v);
}

// Elements position to position + W - 1.
template <int W>
__device__ __forceinline__ void Walk(const FusedParams& p, float* slots, int64_t position) {
  float last[W] = {};
#pragma unroll 1
  for (int s = 0; s < p.steps; ++s) {
    const FusedStep& step = p.step[s];
    float a[W], b[W] = {};
    Fetch(p, slots, step.operand[0], position, last, a);
    if (step.operands > 1) Fetch(p, slots, step.operand[1], position, last, b);
    if (step.kind == FusedStep::Kind::kFormula) {
      Compute(step.formula, step.numbers, a, b, last);
    } else {
      float c[W];
      Fetch(p, slots, step.operand[2], position, last, c);
      if (step.kind == FusedStep::Kind::kSelect) {
#pragma unroll
        for (int i = 0; i < W; ++i) last[i] = a[i] != 0.0f ? b[i] : c[i];
      } else {
        float scale[W], shift[W];
        Fetch(p, slots, step.operand[3], position, last, scale);
        Fetch(p, slots, step.operand[4], position, last, shift);
#pragma unroll
        for (int i = 0; i < W; ++i) last[i] = (a[i] - b[i] - c[i]) * scale[i] + shift[i];
      }
    }
    Round(step.dtype, last);
    if (step.slot >= 0) {
#pragma unroll
      for (int i = 0; i < W; ++i) SlotElement(slots, step.slot, i) = last[i];
    }
  }
  StoreValues<W, float, /*kBytes=*/true>(p.y, p.step[p.steps - 1].dtype, position, last);
}

__global__ void __launch_bounds__(kFusedThreads) FusedKernel(FusedParams p) {
  HT_DYNAMIC_SHARED(float, slots);
  const int thread = static_cast<int>(threadIdx.x);
  const int64_t tile = static_cast<int64_t>(blockIdx.x) * (kFusedThreads * kFusedElements);
  if (p.width == kFusedElements && tile + kFusedThreads * kFusedElements <= p.size) {
    Walk<kFusedElements>(p, slots, tile + thread * kFusedElements);
    return;
  }
#pragma unroll 1
  for (int j = 0; j < kFusedElements; ++j) {
    const int64_t position = tile + j * kFusedThreads + thread;
    if (position < p.size) Walk<1>(p, slots, position);
  }
}

}  // namespace

cudaError_t LaunchFused(const FusedParams& params, cudaStream_t stream) {
  constexpr int64_t kTile = int64_t{kFusedThreads} * kFusedElements;
  const dim3 grid(static_cast<unsigned>((params.size + kTile - 1) / kTile));
  return LaunchKernel(FusedKernel, grid, kFusedThreads,
                      static_cast<size_t>(params.slots) * kTile * sizeof(float), stream, params);
}

}  // namespace halftone::cuda
