#include "halftone/core/version.h"

namespace halftone {

// HALFTONE_VERSION comes from the project's version, see the top CMakeLists.txt.
const char* Version() { return HALFTONE_VERSION; }

}  // namespace halftone
