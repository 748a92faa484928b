// Algorithm: each segment is cut into chunks of 16 KiB; a block of 256 threads copies a chunk,
// whose segment it finds by bisection of the chunk table in the parameters.
// Accesses: 16 bytes a thread where both ends are aligned, and 1 byte elsewhere and in the tail.
// Shared bytes: none. Bound: memory. Bytes moved: 2 a byte copied, the minimum.
#include "halftone/kernels/cuda/device/chunk_table.h"
#include "halftone/kernels/cuda/device/device.cuh"
#include "halftone/kernels/cuda/runtime/multi_copy.h"

namespace halftone::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kChunk = 16384;
constexpr int kSegments = 144;

struct CopyBatch {
  const kernels::DeviceRunState* gate;
  CopySegment segments[kSegments];
  ChunkTable<kSegments> table;
};
static_assert(sizeof(CopyBatch) <= 4096);

__global__ void MultiCopyKernel(CopyBatch batch) {
  if (batch.gate != nullptr && batch.gate->fault_id != 0) return;
  const int i = ArrayOfChunk(batch.table, blockIdx.x);
  const int64_t begin = static_cast<int64_t>(blockIdx.x - batch.table.first[i]) * kChunk;
  const int64_t rest = static_cast<int64_t>(batch.segments[i].bytes) - begin;
  const int64_t bytes = rest < kChunk ? rest : kChunk;
  unsigned char* const to = static_cast<unsigned char*>(batch.segments[i].to) + begin;
  const unsigned char* const from =
      static_cast<const unsigned char*>(batch.segments[i].from) + begin;
  int64_t done = 0;
  if ((reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from)) % 16 == 0) {
    const int64_t units = bytes / 16;
    for (int64_t u = threadIdx.x; u < units; u += kThreads) {
      reinterpret_cast<uint4*>(to)[u] = reinterpret_cast<const uint4*>(from)[u];
    }
    done = units * 16;
  }
  for (int64_t b = done + threadIdx.x; b < bytes; b += kThreads) to[b] = from[b];
}

}  // namespace

cudaError_t LaunchMultiCopy(const CopySegment* segments, size_t count,
                            const kernels::DeviceRunState* gate, cudaStream_t stream) {
  for (size_t next = 0; next < count;) {
    CopyBatch batch{};
    batch.gate = gate;
    for (; next < count; ++next) {
      const auto bytes = static_cast<int64_t>(segments[next].bytes);
      if (!batch.table.HasRoom(bytes, kChunk)) break;
      batch.segments[batch.table.count] = segments[next];
      batch.table.Add(bytes, kChunk);
    }
    if (batch.table.chunks() == 0) continue;
    const cudaError_t error =
        LaunchKernel(MultiCopyKernel, batch.table.chunks(), kThreads, 0, stream, batch);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace halftone::cuda
