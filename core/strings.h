// Message building: Concat(1, " of ", shape) streams each part.
#pragma once

#include <sstream>
#include <string>

namespace halftone {

template <typename... Parts>
std::string Concat(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

}  // namespace halftone
