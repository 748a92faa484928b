#include "halftone/core/check.h"

#include <cstdio>
#include <cstdlib>

namespace halftone::internal {

void CheckFailed(const char* file, int line, const char* condition, const char* message) {
  std::fprintf(stderr, "%s:%d: check failed: %s%s%s\n", file, line, condition,
               message[0] == '\0' ? "" : ": ", message);
  std::fflush(stderr);
  std::abort();
}

}  // namespace halftone::internal
