// The data of a page in its template.
#pragma once

#include <string>

#include "halftone/tools/support/json_text.h"

namespace halftone::tools {

// `page_template` with `data` where it has "@DATA@", in a script element of type application/json.
// Whatever strings the data has, they end neither it nor the page: it has no "<", and is ASCII.
std::string FillPage(const char* page_template, const Json& data);

}  // namespace halftone::tools
