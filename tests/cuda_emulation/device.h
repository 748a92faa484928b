// device_emu.h - what nvcc would provide to device code, for an ordinary C++20 compiler.
// Types, enums and prototypes come from NVIDIA's own headers; only what those leave out is here.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <tuple>
#include <type_traits>
#include <utility>
#include "halftone/tests/cuda_emulation/engine.h"

#if defined(__CUDACC__)
#error "device_emu.h is for the emulated build only"
#endif
#define __launch_bounds__(...)
#undef __shared__
#define __shared__ static_assert(false, "use HT_SHARED / HT_DYNAMIC_SHARED");
#undef __constant__
#define __constant__ static_assert(false, "no __constant__: pass by value");

#define HT_SHARED(type, name, ...)                                                                   \
  using name##_ht_type = type __VA_ARGS__;                                                           \
  static constinit ::halftone::emulation::SharedVar name##_ht_var{sizeof(name##_ht_type), alignof(name##_ht_type), #name}; \
  name##_ht_type& name = *static_cast<name##_ht_type*>(name##_ht_var.Resolve())
#define HT_DYNAMIC_SHARED(type, name) type* const name = static_cast<type*>(::halftone::emulation::DynamicShared())

// ---------------------------------------------------------------- built-in variables (global namespace, as in CUDA)
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

// ---------------------------------------------------------------- barriers and warp collectives
inline void __syncthreads(int line = __builtin_LINE()) { halftone::emulation::BlockBarrier(halftone::emulation::BarOp::kPlain, 0, line); }
inline int __syncthreads_or(int p, int line = __builtin_LINE()) { return halftone::emulation::BlockBarrier(halftone::emulation::BarOp::kOr, p, line); }
inline int __syncthreads_and(int p, int line = __builtin_LINE()) { return halftone::emulation::BlockBarrier(halftone::emulation::BarOp::kAnd, p, line); }
inline int __syncthreads_count(int p, int line = __builtin_LINE()) { return halftone::emulation::BlockBarrier(halftone::emulation::BarOp::kCount, p, line); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { halftone::emulation::WarpCollective(halftone::emulation::WarpOp::kSync, mask, 0, 0); }
inline unsigned __ballot_sync(unsigned mask, int p) { return unsigned(halftone::emulation::WarpCollective(halftone::emulation::WarpOp::kBallot, mask, p != 0, 0)); }
inline int __any_sync(unsigned mask, int p) { return __ballot_sync(mask, p) != 0; }
inline int __all_sync(unsigned mask, int p) { return __ballot_sync(mask, p) == mask; }
inline unsigned __activemask() { return halftone::emulation::ActiveMask(); }

namespace halftone::emulation {
template <class T> T Shuffle(unsigned mask, T v, int src_lane) {  // src_lane: absolute lane, or own lane when out of range
  static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);
  std::uint64_t b = 0;
  std::memcpy(&b, &v, sizeof v);
  b = WarpCollective(WarpOp::kShuffle, mask, b, src_lane);
  T r;
  std::memcpy(&r, &b, sizeof r);
  return r;
}
}  // namespace halftone::emulation
template <class T> T __shfl_sync(unsigned mask, T v, int lane, int width = 32) {
  const int self = halftone::emulation::LaneId();
  return halftone::emulation::Shuffle(mask, v, (self & ~(width - 1)) | (lane & (width - 1)));
}
template <class T> T __shfl_xor_sync(unsigned mask, T v, int x, int width = 32) {
  const int self = halftone::emulation::LaneId(), src = self ^ x;
  return halftone::emulation::Shuffle(mask, v, src > (self | (width - 1)) ? self : src);
}
template <class T> T __shfl_down_sync(unsigned mask, T v, unsigned d, int width = 32) {
  const int self = halftone::emulation::LaneId(), src = self + int(d);
  return halftone::emulation::Shuffle(mask, v, src > (self | (width - 1)) ? self : src);
}
template <class T> T __shfl_up_sync(unsigned mask, T v, unsigned d, int width = 32) {
  const int self = halftone::emulation::LaneId(), src = self - int(d);
  return halftone::emulation::Shuffle(mask, v, src < (self & ~(width - 1)) ? self : src);
}

// ---------------------------------------------------------------- atomics (relaxed, as on the device; TSan sees them as atomic)
namespace halftone::emulation {
template <class T, class F> T AtomicRmw(T* p, F f) {
  CheckAtomic(p, sizeof(T));
  T old;
  __atomic_load(p, &old, __ATOMIC_RELAXED);
  for (T next = f(old); !__atomic_compare_exchange(p, &old, &next, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);) next = f(old);
  return old;
}
}  // namespace halftone::emulation
#define HT_HT_EMULATION_ATOMIC(name, T, expr) inline T name(T* p, T v) { return halftone::emulation::AtomicRmw(p, [v](T o) -> T { return (expr); }); }
HT_HT_EMULATION_ATOMIC(atomicAdd, int, int(unsigned(o) + unsigned(v)))
HT_HT_EMULATION_ATOMIC(atomicAdd, unsigned, o + v)
HT_HT_EMULATION_ATOMIC(atomicAdd, unsigned long long, o + v)
HT_HT_EMULATION_ATOMIC(atomicAdd, float, o + v)
HT_HT_EMULATION_ATOMIC(atomicAdd, double, o + v)
HT_HT_EMULATION_ATOMIC(atomicAdd, __half, o + v)
HT_HT_EMULATION_ATOMIC(atomicAdd, __nv_bfloat16, o + v)
HT_HT_EMULATION_ATOMIC(atomicSub, int, int(unsigned(o) - unsigned(v)))
HT_HT_EMULATION_ATOMIC(atomicExch, int, v + (o - o))
HT_HT_EMULATION_ATOMIC(atomicExch, unsigned, v + (o - o))
HT_HT_EMULATION_ATOMIC(atomicMax, int, std::max(o, v))
HT_HT_EMULATION_ATOMIC(atomicMin, int, std::min(o, v))
HT_HT_EMULATION_ATOMIC(atomicMax, unsigned, std::max(o, v))
HT_HT_EMULATION_ATOMIC(atomicMin, unsigned, std::min(o, v))
HT_HT_EMULATION_ATOMIC(atomicOr, unsigned, o | v)
HT_HT_EMULATION_ATOMIC(atomicAnd, unsigned, o & v)
HT_HT_EMULATION_ATOMIC(atomicOr, int, o | v)
inline int atomicCAS(int* p, int c, int v) { return halftone::emulation::AtomicRmw(p, [=](int o) { return o == c ? v : o; }); }
inline unsigned atomicCAS(unsigned* p, unsigned c, unsigned v) { return halftone::emulation::AtomicRmw(p, [=](unsigned o) { return o == c ? v : o; }); }
inline unsigned long long atomicCAS(unsigned long long* p, unsigned long long c, unsigned long long v) { return halftone::emulation::AtomicRmw(p, [=](unsigned long long o) { return o == c ? v : o; }); }
inline void __threadfence() {}
inline void __threadfence_block() {}
inline void __threadfence_system() {}

// ---------------------------------------------------------------- integer and math intrinsics
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(unsigned(x)) : 32; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline unsigned __umulhi(unsigned a, unsigned b) { return unsigned((std::uint64_t(a) * b) >> 32); }
inline int __float_as_int(float f) { int i; std::memcpy(&i, &f, 4); return i; }
inline unsigned __float_as_uint(float f) { unsigned i; std::memcpy(&i, &f, 4); return i; }
inline float __int_as_float(int i) { float f; std::memcpy(&f, &i, 4); return f; }
inline float __uint_as_float(unsigned i) { float f; std::memcpy(&f, &i, 4); return f; }
template <class T> T __ldg(const T* p) { return *p; }
inline float rsqrtf(float x) { return 1.f / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __frcp_rn(float a) { return 1.f / a; }
using std::isfinite; using std::isinf; using std::isnan; using std::max; using std::min;
inline int min(int a, long b) { return int(std::min<long>(a, b)); }
// half intrinsics that cuda_fp16.h keeps for the device
inline __half __hfma(__half a, __half b, __half c) { return __double2half(std::fma(double(__half2float(a)), double(__half2float(b)), double(__half2float(c)))); }
inline __half2 __hfma2(__half2 a, __half2 b, __half2 c) { return __halves2half2(__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)); }
inline __half hexp(__half a) { return __float2half(std::exp(__half2float(a))); }
inline __half hsqrt(__half a) { return __float2half(std::sqrt(__half2float(a))); }

// ---------------------------------------------------------------- launch
namespace halftone::cuda {
template <class... P, class... A>
cudaError_t LaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t smem, cudaStream_t stream, A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "wrong number of kernel arguments");
  static_assert((std::is_trivially_copyable_v<P> && ...), "kernel parameters must be trivially copyable");
  std::size_t bytes = 0;
  ((bytes = (bytes + alignof(P) - 1) / alignof(P) * alignof(P) + sizeof(P)), ...);
  std::tuple<P...> params(static_cast<P>(args)...);
  emulation::LaunchInfo info{grid, block, smem, stream, reinterpret_cast<const void*>(kernel), bytes};
  [&]<std::size_t... I>(std::index_sequence<I...>) {
    ((std::is_pointer_v<P> ? emulation::NotePointer(info, reinterpret_cast<const void* const&>(std::get<I>(params)), int(I)) : void()), ...);
  }(std::index_sequence_for<P...>{});
  // The closure owns the parameters: a launch may be carried out later than it was asked for.
  return emulation::Launch(info, [kernel, params] { std::apply(kernel, params); });
}
}  // namespace halftone::cuda
