// The sanitizer that tests are built with, for those that one makes meaningless: it keeps freed
// memory, has memory of its own for each byte, and takes more address space than a limit leaves.
#pragma once

namespace halftone::testing {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kAddressSanitizer = true;
#else
inline constexpr bool kAddressSanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true;
#else
inline constexpr bool kThreadSanitizer = false;
#endif
inline constexpr bool kMemoryIsSanitized = kAddressSanitizer || kThreadSanitizer;

}  // namespace halftone::testing
