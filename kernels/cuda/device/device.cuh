// The one header of kernel authors: device code as nvcc compiles it, and the same source as
// ordinary C++ for the emulated device of the tests (HALFTONE_CUDA_EMULATED).
//
// Rules:
//  1. Kernels are launched by LaunchKernel alone.
//  2. Shared memory comes from HT_SHARED and HT_DYNAMIC_SHARED and starts undefined.
//  3. No reliance on lockstep: __syncwarp between shared accesses of a warp, and every thread of a
//     block reaches each barrier.
//  4. Parameters are trivially copyable and at most 4 KiB. No __device__ or __constant__ globals,
//     no recursion, no inline PTX, no printf.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <type_traits>

#if defined(HALFTONE_CUDA_EMULATED)

// The build says what stands in for nvcc.
#include HALFTONE_CUDA_DEVICE_HEADER

#else

// HT_SHARED(float, part, [32]): an array of the block, alike in all of its threads.
#define HT_SHARED(type, name, extent) __shared__ type name extent
// The launch's dynamic shared memory as `type* name`, 16-byte aligned.
#define HT_DYNAMIC_SHARED(type, name)                                \
  extern __shared__ __align__(16) unsigned char ht_dynamic_shared[]; \
  type* const name = reinterpret_cast<type*>(ht_dynamic_shared)

namespace halftone::cuda {

template <typename... P>
cudaError_t LaunchWith(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                       cudaStream_t stream, P... args) {
  void* pointers[sizeof...(P) + 1] = {static_cast<void*>(&args)...};
  const cudaError_t error = cudaLaunchKernel(reinterpret_cast<const void*>(kernel), grid, block,
                                             pointers, shared_bytes, stream);
  // Not cudaGetLastError: it may hold what somebody else left there. Nor is anything left for
  // others.
  if (error != cudaSuccess) (void)cudaGetLastError();
  return error;
}

// Puts `kernel` on `stream`. `shared_bytes` is dynamic shared memory. Arguments convert to the
// kernel's parameters. Returns the error of the launch alone (bad configuration, out of resources).
template <typename... P, typename... A>
cudaError_t LaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                         cudaStream_t stream, A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "wrong number of kernel arguments");
  static_assert((std::is_trivially_copyable_v<P> && ...), "parameters must be trivially copyable");
  constexpr size_t kWithoutOptIn = size_t{48} * 1024;
  if (shared_bytes > kWithoutOptIn) {
    const cudaError_t error = cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                                   cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   static_cast<int>(shared_bytes));
    if (error != cudaSuccess) return error;
  }
  return LaunchWith(kernel, grid, block, shared_bytes, stream, static_cast<P>(args)...);
}

}  // namespace halftone::cuda

#endif
