// Pointers to host memory among the parameters of a kernel.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "halftone/tests/cuda_emulation/device_hooks.h"
#include "halftone/tests/cuda_emulation/runtime.h"

namespace halftone::emulation {

// The first parameter that is a pointer which device code could not follow, or -1.
int HostPointerArgument(const Runtime& r, const LaunchRequest& request);

// Pointers within parameter structures cannot be told from numbers, so what could be one is no
// mistake by itself. For the life of this, under AddressSanitizer, allocations and globals of the
// host that a word of a structure points into are poisoned: the access is reported.
class HostPointerGuard {
 public:
  HostPointerGuard(const Runtime& r, const LaunchRequest& request);
  ~HostPointerGuard();
  HostPointerGuard(const HostPointerGuard&) = delete;
  HostPointerGuard& operator=(const HostPointerGuard&) = delete;

 private:
  std::vector<std::pair<void*, size_t>> poisoned_;
};

}  // namespace halftone::emulation
