// Device code as ordinary C++: what kernels/cuda/device/device.cuh includes in the emulated build
// in place of what nvcc provides. Types, enums and prototypes come from NVIDIA's own headers; what
// they leave to the compiler is here and in the device_*.h beside it.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>

#include "halftone/tests/cuda_emulation/device_atomics.h"
#include "halftone/tests/cuda_emulation/device_builtins.h"
#include "halftone/tests/cuda_emulation/device_hooks.h"
#include "halftone/tests/cuda_emulation/device_math.h"

#if defined(__CUDACC__)
#error "for the emulated build only"
#endif

#define __launch_bounds__(...)
#undef __shared__
#define __shared__ static_assert(false, "HT_SHARED or HT_DYNAMIC_SHARED instead of __shared__");
#undef __constant__
#define __constant__ static_assert(false, "parameters instead of __constant__");

#define HT_SHARED(type, name, extent)                                        \
  using name##_ht_type = type extent;                                        \
  static constinit ::halftone::emulation::SharedVariable name##_ht_variable{ \
      sizeof(name##_ht_type), alignof(name##_ht_type), #name};               \
  name##_ht_type& name = *static_cast<name##_ht_type*>(name##_ht_variable.Resolve())
#define HT_DYNAMIC_SHARED(type, name) \
  type* const name = static_cast<type*>(::halftone::emulation::DynamicShared())

namespace halftone::cuda {

// As in device.cuh. Beyond the errors of a real launch: cudaErrorIllegalAddress for an argument
// that is a pointer to host memory.
template <typename... P, typename... A>
cudaError_t LaunchKernel(void (*kernel)(P...), dim3 grid, dim3 block, size_t shared_bytes,
                         cudaStream_t stream, A&&... args) {
  static_assert(sizeof...(P) == sizeof...(A), "wrong number of kernel arguments");
  static_assert((std::is_trivially_copyable_v<P> && ...), "parameters must be trivially copyable");
  struct Call {
    void (*kernel)(P...);
    std::tuple<P...> params;
  };
  // On the heap: a launch may be carried out later than it was asked for, and more than once.
  const auto call = std::make_shared<Call>(Call{kernel, {static_cast<P>(args)...}});
  emulation::LaunchRequest request;
  request.thread = [](const void* arguments) {
    const Call& made = *static_cast<const Call*>(arguments);
    std::apply(made.kernel, made.params);
  };
  request.arguments = call;
  request.grid = grid;
  request.block = block;
  request.shared_bytes = shared_bytes;
  request.stream = stream;
  request.parameter_bytes = 0;
  ((request.parameter_bytes =
        (request.parameter_bytes + alignof(P) - 1) / alignof(P) * alignof(P) + sizeof(P)),
   ...);
  std::apply(
      [&](const P&... param) {
        request.parameters = {{&param, sizeof(P), std::is_pointer_v<P>}...};
      },
      call->params);
  return emulation::Launch(std::move(request));
}

}  // namespace halftone::cuda
