// Where a tensor lives and a graph runs.
#pragma once

#include <string>

#include "halftone/core/status.h"

namespace halftone {

struct Device {
  enum class Kind { kReference, kCpu, kCuda };
  Kind kind = Kind::kCpu;
  int index = 0;

  // The default: oneDNN and SIMD kernels, host memory.
  static Device Cpu() { return {}; }
  // Runs every node on its reference kernel: slow, for checking the others. Host memory.
  static Device Reference() { return {Kind::kReference, 0}; }
  static Device Cuda(int index) { return {Kind::kCuda, index}; }

  // "cpu", "reference", "cuda:0".
  std::string ToString() const;
  friend bool operator==(const Device&, const Device&) = default;
};

// "cpu", "reference", "cuda" (the first) or "cuda:N". Whether the device is there is not asked.
// Errors: InvalidArgument.
absl::StatusOr<Device> ParseDevice(const std::string& text);

}  // namespace halftone
