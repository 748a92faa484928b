// Which sanitizer checks the program around the emulated device, and memory marked for it.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define HT_EMULATION_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HT_EMULATION_ASAN 1
#endif
#endif

#if defined(HT_EMULATION_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace halftone::emulation {

#if defined(HT_EMULATION_ASAN)
inline constexpr bool kAddressSanitizer = true;
// Accesses of [p, p + bytes) are reported from now on, or no more.
inline void Poison(const void* p, size_t bytes) { __asan_poison_memory_region(p, bytes); }
inline void Unpoison(const void* p, size_t bytes) { __asan_unpoison_memory_region(p, bytes); }
#else
inline constexpr bool kAddressSanitizer = false;
inline void Poison(const void*, size_t) {}
inline void Unpoison(const void*, size_t) {}
#endif

// HT_EMULATION_TSAN is set by the build: kernels are instrumented, the device is not.
#if defined(HT_EMULATION_TSAN) || defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif

}  // namespace halftone::emulation
