// The tests measure no kernels against one another unless HALFTONE_AUTOTUNE says so: it takes long
// on an emulated device, and tests of measuring ask for it.
#include <cstdlib>

namespace {

[[maybe_unused]] const int kNoMeasuring = setenv("HALFTONE_AUTOTUNE", "0", /*overwrite=*/0);

}  // namespace
