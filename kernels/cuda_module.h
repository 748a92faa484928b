// What a program and its CUDA module, libhalftone_cuda.so, agree on. They pass each other objects
// of C++, so both must come from one build of the library.
#pragma once

#include <memory>
#include <string>

#include "halftone/core/alloc_counter.h"
#include "halftone/core/status.h"
#include "halftone/core/version.h"
#include "halftone/kernels/device_backend.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

// The module's entry returns one. `abi` is read first, and the rest only if it equals CudaAbi() of
// the program.
struct CudaModule {
  const char* abi;
  // To call once, before the others: heap allocations of the module then count as the program's.
  void (*share_allocation_state)(internal::AllocationStateFunction of_this_thread);
  void (*register_kernels)(KernelRegistry& registry);
  // Errors: as OpenCuda.
  absl::StatusOr<std::unique_ptr<DeviceBackend>> (*open)(int index);
};

// The module's only symbol, a function of type CudaModuleEntry.
inline constexpr char kCudaModuleEntry[] = "halftone_cuda_module";
using CudaModuleEntry = const CudaModule*();

// Version, compiler, and the sizes of what passes between the two.
inline std::string CudaAbi() {
  return Concat("halftone ", Version(), ", ", __VERSION__, ", ", sizeof(ir::Node), " ",
                sizeof(ir::Graph), " ", sizeof(ir::ValueType), " ", sizeof(KernelCandidate), " ",
                sizeof(KernelRegistry), " ", sizeof(Kernel), " ", sizeof(KernelArgs), " ",
                sizeof(RunState), " ", sizeof(DeviceRunState), " ", sizeof(DeviceMemoryStats), " ",
                sizeof(CudaModule));
}

}  // namespace halftone::kernels
