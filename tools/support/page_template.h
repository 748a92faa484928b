// The pages as text, embedded by CMake (cmake/HalftonePage.cmake).
#pragma once

namespace halftone::tools {

// With "@DATA@" where the data goes, see page_data.h.
extern const char kGraphPageTemplate[];  // page/
extern const char kRunPageTemplate[];    // run_page/

}  // namespace halftone::tools
