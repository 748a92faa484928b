// engine.h - runs a grid: blocks one after another, the threads of a block as fibers.
#pragma once
#include <cuda_runtime_api.h>
#include <vector_types.h>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

namespace halftone::emulation {
enum class BarOp : std::uint8_t { kPlain, kOr, kAnd, kCount };
enum class WarpOp : std::uint8_t { kSync, kBallot, kShuffle };
int BlockBarrier(BarOp op, int pred, int line);
std::uint64_t WarpCollective(WarpOp op, unsigned mask, std::uint64_t value, int src_lane);
unsigned ActiveMask();
int LaneId();
void CheckAtomic(const void* p, std::size_t bytes);
void* DynamicShared();
extern std::uint64_t g_block_serial;  // changes with every block

struct SharedVar {  // one HT_SHARED variable; storage is anew and poisoned for every block
  std::size_t size, align;
  const char* name;
  std::uint64_t serial = 0;
  void* where = nullptr;
  void* Resolve() { return serial == g_block_serial ? where : Place(); }
  void* Place();
};

struct LaunchInfo {
  dim3 grid, block;
  std::size_t smem;
  cudaStream_t stream;
  const void* kernel;
  std::size_t param_bytes;
  const char* bad_pointer = nullptr;
};
void NotePointer(LaunchInfo& info, const void* p, int index);  // complains of a pointer that is no device memory
cudaError_t Launch(const LaunchInfo& info, std::function<void()> thread);  // validates, then queues or runs
cudaError_t LaunchCustom(const LaunchInfo& info, std::function<std::string()> grid);  // grid returns what went wrong, or nothing
bool RunGridChecked(const LaunchInfo& info, const std::function<void()>& thread);
const char* LastFailure();

enum class Order { kForward, kReverse, kRandom };
struct Options {
  Order order = Order::kForward;
  std::uint64_t seed = 1;
  bool lazy_streams = false;   // work waits in its stream until something synchronises
  bool protect = true;         // host access to device memory faults
  bool strict_barriers = true; // __syncthreads must be reached by every thread, from one call site
};
Options& Opt();
struct Stats { std::uint64_t threads = 0, switches = 0, blocks = 0, launches = 0, fibers_started = 0; };
Stats& GetStats();
[[noreturn]] void Fail(const char* fmt, ...);  // throws halftone::emulation::DeviceFault on host stack or records it from a fiber
struct DeviceFault { char text[512]; };

// device memory (memory.cpp)
bool IsDevicePointer(const void* p);
void DeviceAccessBegin();  // device code or a copy is about to run
void DeviceAccessEnd();
}  // namespace halftone::emulation
