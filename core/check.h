// HT_CHECK ends the program on a broken invariant of ours. What a user, a file or a device can
// cause is an absl::Status.
#pragma once

namespace halftone::internal {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const char* message);

}  // namespace halftone::internal

#define HT_CHECK(condition, ...) \
  (static_cast<bool>(condition)  \
       ? void(0)                 \
       : ::halftone::internal::CheckFailed(__FILE__, __LINE__, #condition, "" __VA_ARGS__))
