// A training run as one HTML page that loads nothing: `halftone_dump --run DIR`.
#pragma once

#include <string>

#include "halftone/tools/support/run_history.h"

namespace halftone::tools {

// A chart for each name behind the last '/' of the tags, with the skipped steps marked, and a table
// of the numbers. The page is made of the files of run_page/; it works on the data that is embedded
// in it as JSON, of each curve at most about 2,000 points. Whatever strings the run has, they are
// text to the browser. `title`: what the run is called.
std::string ToHtml(const RunHistory& run, const std::string& title);

}  // namespace halftone::tools
