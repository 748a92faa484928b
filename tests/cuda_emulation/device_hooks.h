// What device.h calls: the built-ins of device code that need the engine, and launches.
#pragma once

#include <cuda_runtime_api.h>
#include <vector_types.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace halftone::emulation {

enum class BarrierKind : uint8_t { kPlain, kOr, kAnd, kCount };
enum class WarpKind : uint8_t { kSync, kBallot, kShuffle };

// `line` tells one barrier of a kernel from another.
int BlockBarrier(BarrierKind kind, int predicate, int line);
// kBallot: the mask of lanes whose value is not 0. kShuffle: the value of `source_lane`.
uint64_t WarpCollective(WarpKind kind, unsigned mask, uint64_t value, int source_lane);
// The lanes of the warp that have not exited.
unsigned ActiveMask();
int LaneId();
// Fails the kernel unless p is a multiple of `bytes`.
void CheckAligned(const void* p, size_t bytes);

// One HT_SHARED variable. Its storage is new and undefined (NaN) in every block.
struct SharedVariable {
  size_t bytes, align;
  const char* name;
  uint64_t block = 0;
  void* where = nullptr;
  void* Resolve();
};
void* DynamicShared();

struct KernelParameter {
  const void* bytes;
  size_t size;
  bool is_pointer;
};

struct LaunchRequest {
  // One thread of the kernel.
  void (*thread)(const void* arguments);
  std::shared_ptr<const void> arguments;
  dim3 grid, block;
  size_t shared_bytes;
  cudaStream_t stream;
  size_t parameter_bytes;                   // laid out as the device lays them out
  std::vector<KernelParameter> parameters;  // within `arguments`
};

// Checks, then queues, runs or captures.
cudaError_t Launch(LaunchRequest request);

}  // namespace halftone::emulation
