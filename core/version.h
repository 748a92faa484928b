// The version of the library that a program is linked with.
#pragma once

namespace halftone {

// "0.1.0": major.minor.patch, as the CMake project, the packages and pkg-config give it. A program
// built against one minor version needs that minor version.
const char* Version();

}  // namespace halftone
