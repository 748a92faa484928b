// The files of page/ as one text, embedded by CMake (cmake/HalftonePage.cmake).
#pragma once

namespace halftone::tools {

// With "@DATA@" where the data of a graph goes.
extern const char kPageTemplate[];

}  // namespace halftone::tools
