// What tests set and ask of the emulated device. Kernels and the backend know nothing of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace halftone::emulation {

// In which order the blocks of a grid and the threads of a block run.
enum class ThreadOrder : uint8_t { kForward, kReverse, kRandom };

struct Options {
  // HALFTONE_EMULATION_ORDER=forward|reverse|random sets what a program starts with.
  ThreadOrder order = ThreadOrder::kForward;
  // Of kRandom, and of which blocks the race detector tells apart in a grid.
  // HALFTONE_EMULATION_SEED sets what a program starts with.
  uint64_t seed = 1;
  // Work stays in its stream until something waits for it, so that a missing event or
  // synchronisation shows. False: it is done before the call returns.
  // HALFTONE_EMULATION_LAZY=1 sets what a program starts with.
  bool lazy = false;
  // Host code that touches device memory faults.
  bool protect = true;
  size_t memory_bytes = size_t{2} << 30;  // per device; allocations beyond it fail
  int device_count = 1;                   // at most kMaxDevices
  int compute_major = 8, compute_minor = 0;
  // How long the host waits for work that waits for another process, before it fails its device.
  double hang_seconds = 60;
  // Every call returns cudaErrorInsufficientDriver.
  // HALFTONE_EMULATION_NO_DRIVER=1 sets what a program starts with.
  bool no_driver = false;
};
inline constexpr int kMaxDevices = 8;

// Sums over all devices since the last ResetStatistics.
struct Statistics {
  uint64_t launches = 0;       // LaunchKernel calls, captured ones included
  uint64_t kernels = 0;        // grids run, those of graphs included
  uint64_t blocks = 0;         // run
  uint64_t threads = 0;        // run
  uint64_t fibers = 0;         // stacks taken: one a block, and more where threads wait
  uint64_t library_calls = 0;  // cuBLASLt and cuDNN, captured ones included
  uint64_t copies = 0;         // cudaMemcpy*, captured ones included
  uint64_t memsets = 0;        // cudaMemset*, captured ones included
  uint64_t graph_launches = 0;
  uint64_t device_allocations = 0;
  uint64_t pinned_allocations = 0;
  // Calls that make the host wait: cudaStream-, cudaEvent- and cudaDeviceSynchronize, copies from
  // or to pageable memory, cudaMemcpy other than on the device, cudaFree, cudaFreeHost.
  uint64_t host_synchronisations = 0;
};

Options GetOptions();
// Waits for all work first.
void SetOptions(const Options& options);

Statistics GetStatistics();
void ResetStatistics();

// Calls that can be made to fail.
enum class Call : uint8_t { kLaunch, kLibrary, kInstantiateGraph };
inline constexpr int kNumCalls = 3;

// The `nth` such call from now on (1: the next) fails once and does nothing; captured ones count.
// 0: none does. A kernel of a library is a kLibrary, not a kLaunch. The error is
// cudaErrorLaunchOutOfResources of a launch, cudaErrorMemoryAllocation of the others.
void FailCall(Call call, uint64_t nth);

// What the device said last: the cause of a failed launch, copy or capture. Empty: nothing yet.
// Everything it says also goes to stderr.
std::string LastReport();
// Forgets the report, the errors that every later call would return (a real device needs a new
// process), what FailCall asked for, and whatever work still waits.
void ClearErrors();

// Of all devices.
size_t LiveDeviceBytes();
size_t LiveDeviceAllocations();

// Sets options and puts back the former ones, without errors, at its end.
class ScopedOptions {
 public:
  explicit ScopedOptions(const Options& options) : before_(GetOptions()) { SetOptions(options); }
  ~ScopedOptions() {
    ClearErrors();
    SetOptions(before_);
  }
  ScopedOptions(const ScopedOptions&) = delete;
  ScopedOptions& operator=(const ScopedOptions&) = delete;

 private:
  Options before_;
};

}  // namespace halftone::emulation
