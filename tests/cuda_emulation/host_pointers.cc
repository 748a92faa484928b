#include "halftone/tests/cuda_emulation/host_pointers.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "halftone/tests/cuda_emulation/sanitizers.h"

#if defined(HT_EMULATION_ASAN)
// g++ does not install sanitizer/allocator_interface.h.
extern "C" int __sanitizer_get_ownership(const volatile void* p);
extern "C" size_t __sanitizer_get_allocated_size(const volatile void* p);
#endif

namespace halftone::emulation {

int HostPointerArgument(const Runtime& r, const LaunchRequest& request) {
  for (size_t i = 0; i < request.parameters.size(); ++i) {
    if (!request.parameters[i].is_pointer) continue;
    const void* p = *static_cast<const void* const*>(request.parameters[i].bytes);
    if (p != nullptr && !r.memory.Contains(p) && !r.IsPinned(p)) return static_cast<int>(i);
  }
  return -1;
}

#if defined(HT_EMULATION_ASAN)

namespace {

constexpr uintptr_t kLowest = 4096, kHighest = uintptr_t{1} << 47;  // of addresses of a process

bool Contains(const std::pair<void*, size_t>& region, const void* p) {
  const uintptr_t begin = reinterpret_cast<uintptr_t>(region.first);
  return reinterpret_cast<uintptr_t>(p) - begin < region.second;
}

// The live allocation or the global around p; null: none.
std::pair<void*, size_t> HostObject(void* p) {
  void* begin = nullptr;
  size_t bytes = 0;
  char name[8];
  const char* kind = __asan_locate_address(p, name, sizeof(name), &begin, &bytes);
  if (std::strcmp(kind, "global") == 0) return {begin, bytes};
  if (std::strcmp(kind, "heap") != 0 || __sanitizer_get_ownership(begin) == 0) return {nullptr, 0};
  return {begin, __sanitizer_get_allocated_size(begin)};
}

}  // namespace

HostPointerGuard::HostPointerGuard(const Runtime& r, const LaunchRequest& request) {
  for (const KernelParameter& parameter : request.parameters) {
    if (parameter.is_pointer) continue;
    for (size_t at = 0; at + sizeof(void*) <= parameter.size; at += sizeof(void*)) {
      void* p = nullptr;
      std::memcpy(&p, static_cast<const char*>(parameter.bytes) + at, sizeof(p));
      const uintptr_t address = reinterpret_cast<uintptr_t>(p);
      if (address < kLowest || address >= kHighest || r.memory.Contains(p) || r.IsPinned(p)) {
        continue;
      }
      const std::pair<void*, size_t> object = HostObject(p);
      if (object.first != nullptr) poisoned_.push_back(object);
    }
  }
  // Padding holds what was there before, which may point to what the emulated device itself uses.
  const void* const own[] = {&r, &request, request.parameters.data(), request.arguments.get(),
                             poisoned_.data()};
  std::erase_if(poisoned_, [&](const auto& object) {
    return std::ranges::any_of(own, [&](const void* p) { return Contains(object, p); });
  });
  for (const auto& [begin, bytes] : poisoned_) Poison(begin, bytes);
}

HostPointerGuard::~HostPointerGuard() {
  for (const auto& [begin, bytes] : poisoned_) Unpoison(begin, bytes);
}

#else

HostPointerGuard::HostPointerGuard(const Runtime&, const LaunchRequest&) {}
HostPointerGuard::~HostPointerGuard() {}

#endif

}  // namespace halftone::emulation
