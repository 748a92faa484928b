// Owners of the runtime's handles.
#pragma once

#include <cuda_runtime_api.h>

#include <memory>
#include <type_traits>

namespace halftone::cuda {

template <auto kDestroy>
struct HandleDeleter {
  template <typename T>
  void operator()(T* handle) const {
    // Fails only where the device's work had failed before.
    (void)kDestroy(handle);
  }
};

template <typename Handle, auto kDestroy>
using UniqueHandle = std::unique_ptr<std::remove_pointer_t<Handle>, HandleDeleter<kDestroy>>;

using UniqueStream = UniqueHandle<cudaStream_t, cudaStreamDestroy>;
using UniqueEvent = UniqueHandle<cudaEvent_t, cudaEventDestroy>;
using UniqueGraph = UniqueHandle<cudaGraph_t, cudaGraphDestroy>;
using UniqueGraphExec = UniqueHandle<cudaGraphExec_t, cudaGraphExecDestroy>;

}  // namespace halftone::cuda
