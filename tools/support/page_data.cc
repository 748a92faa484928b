#include "halftone/tools/support/page_data.h"

namespace halftone::tools {
namespace {

// JSON that may stand in a script element: its end tag, and "<!--", begin with '<', which only
// occurs in strings. All that is not ASCII is escaped too.
std::string ForScript(const Json& json) {
  std::string text;
  for (char c : json.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<') {
      text += "\\u003c";
    } else {
      text += c;
    }
  }
  return text;
}

}  // namespace

std::string FillPage(const char* page_template, const Json& data) {
  std::string page = page_template;
  const std::string place = "@DATA@";
  return page.replace(page.find(place), place.size(), ForScript(data));
}

}  // namespace halftone::tools
