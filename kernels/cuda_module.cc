// OpenCuda: finds, loads and checks the module. Nothing here names a CUDA library, so programs
// build, start and run on the CPU without one.
#include "halftone/kernels/cuda_module.h"

#include <dlfcn.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

#include "halftone/core/module_file.h"

// Programs that link the kernels have it: those of the emulated build, and the kernels' own tests, whose
// links ask for it.
extern "C" __attribute__((weak)) halftone::kernels::CudaModuleEntry halftone_cuda_module;

namespace halftone::kernels {
namespace {

constexpr char kLibrary[] = "libhalftone_cuda.so";
constexpr char kVariable[] = "HALFTONE_CUDA_LIBRARY";

absl::StatusOr<const CudaModule*> Load() {
  const char* const named = std::getenv(kVariable);
  const bool is_named = named != nullptr && named[0] != '\0';
  if (!is_named && &halftone_cuda_module != nullptr) return halftone_cuda_module();
  const std::string file = is_named ? named : FindModule(kLibrary);
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    const std::string reason = error == nullptr ? file : error;
    // The loader names the file that is missing: the module, or a library that it needs.
    if (!is_named &&
        reason.rfind(Concat(kLibrary, ": cannot open shared object file: No such"), 0) == 0) {
      return Unimplemented("CUDA is not installed: no ", kLibrary,
                           " beside the program, on its run path or among the system's libraries");
    }
    return FailedPrecondition("cannot load the CUDA module: ", reason,
                              is_named ? Concat(" (named by ", kVariable, ")") : "");
  }
  void* const entry = dlsym(library, kCudaModuleEntry);
  if (entry == nullptr) {
    dlclose(library);
    return FailedPrecondition("cannot load the CUDA module: ", file, " has no symbol ",
                              kCudaModuleEntry);
  }
  const CudaModule* const module = reinterpret_cast<CudaModuleEntry*>(entry)();
  if (module->abi != CudaAbi()) {
    const std::string theirs = module->abi;
    dlclose(library);
    return FailedPrecondition("cannot load the CUDA module: ", file,
                              " is of another build than the program: ", theirs, "; expected ",
                              CudaAbi());
  }
  return module;
}

// All that was opened, for the life of the process: the driver may be gone before our statics.
struct Opened {
  std::mutex mutex;
  const CudaModule* module = nullptr;
  std::map<int, std::unique_ptr<DeviceBackend>> backends;
};

absl::StatusOr<DeviceBackend*> Open(int index) {
  static auto* const opened = new Opened;
  const std::scoped_lock lock(opened->mutex);
  const auto found = opened->backends.find(index);
  if (found != opened->backends.end()) return found->second.get();
  if (opened->module == nullptr) {
    HT_ASSIGN_OR_RETURN(const CudaModule* const module, Load());
    module->share_allocation_state(internal::allocation_state);
    opened->module = module;
  }
  HT_ASSIGN_OR_RETURN(std::unique_ptr<DeviceBackend> backend, opened->module->open(index));
  // Only where there is a device: without one the CPU's lists stay as they are.
  if (opened->backends.empty()) opened->module->register_kernels(KernelRegistry::Global());
  return (opened->backends[index] = std::move(backend)).get();
}

}  // namespace

absl::StatusOr<DeviceBackend*> OpenCuda(int index) {
  absl::StatusOr<DeviceBackend*> backend = Open(index);
  if (!backend.ok()) {
    return Annotate(backend.status(), Concat("device ", Device::Cuda(index).ToString(), ": "));
  }
  HT_RETURN_IF_ERROR((*backend)->CheckProcess());
  return backend;
}

}  // namespace halftone::kernels
