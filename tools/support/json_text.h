// JSON as the tools write it. For sources only: the library is heavy.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace halftone::tools {

using Json = nlohmann::ordered_json;  // keys stay in the order in which they are given

// With a newline at the end. Names come from files and need not be UTF-8: what is not becomes
// U+FFFD instead of an exception.
inline std::string Dump(const Json& json) {
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace halftone::tools
