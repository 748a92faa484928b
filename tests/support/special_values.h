// The values beside the numbers, for tests of every layer.
#pragma once

#include <limits>

namespace halftone::testing {

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

}  // namespace halftone::testing
