// Tensors as text for people.
#pragma once

#include <string>

#include "halftone/core/tensor.h"

namespace halftone::tools {

// "1.5", "[1, 2]", "[[1, 2],\n [3, 4]]": the shortest digits that read back. Of more than 1,000
// elements only the first and last three along each axis are shown.
std::string FormatValues(const Tensor& tensor);

}  // namespace halftone::tools
