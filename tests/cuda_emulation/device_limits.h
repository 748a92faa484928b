// Limits of NVIDIA's devices. Source: CUDA C++ Programming Guide 13.0, "Compute Capabilities".
#pragma once

#include <cstddef>

#include "halftone/tests/cuda_emulation/control.h"

namespace halftone::emulation {

inline constexpr unsigned kMaxBlockZ = 64;
inline constexpr unsigned kMaxGridX = 2147483647, kMaxGridYz = 65535;
inline constexpr size_t kMaxParameterBytes = 4096;  // ours; since 7.0 a device takes 32,764
inline constexpr int kMultiprocessors = 4;          // ours

// Shared memory of a multiprocessor.
inline size_t SharedBytesPerMultiprocessor(const Options& options) {
  const int capability = options.compute_major * 10 + options.compute_minor;
  size_t kilobytes = 64;  // 7.5
  if (capability == 80 || capability == 87) kilobytes = 164;
  if (capability == 86 || capability == 89) kilobytes = 100;
  if (capability >= 90) kilobytes = 228;
  if (capability >= 120) kilobytes = 100;
  return kilobytes * 1024;
}
// The most that one block may use; the device keeps 1 KiB of a block for itself from 8.0 on.
inline size_t SharedBytesOptIn(const Options& options) {
  return SharedBytesPerMultiprocessor(options) - (options.compute_major >= 8 ? 1024 : 0);
}
inline int ThreadsPerMultiprocessor(const Options& options) {
  const int capability = options.compute_major * 10 + options.compute_minor;
  if (capability < 80) return 1024;
  return capability == 86 || capability == 87 || capability == 89 || capability >= 120 ? 1536
                                                                                       : 2048;
}
inline int BlocksPerMultiprocessor(const Options& options) {
  const int capability = options.compute_major * 10 + options.compute_minor;
  if (capability < 80 || capability == 86 || capability == 87) return 16;
  if (capability == 89 || capability >= 120) return 24;
  return 32;
}

}  // namespace halftone::emulation
