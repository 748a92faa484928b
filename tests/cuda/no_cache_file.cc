// The tests leave no choices behind, neither theirs for the user's programs nor an emulated
// device's for a real one: HALFTONE_CACHE_DIR is empty unless it is set.
#include <cstdlib>

namespace {

[[maybe_unused]] const int kCacheOff = setenv("HALFTONE_CACHE_DIR", "", /*overwrite=*/0);

}  // namespace
