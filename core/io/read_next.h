// Where readers of formats take bytes from: a text, a file, a compressed part of one.
#pragma once

#include <cstddef>
#include <functional>

#include "halftone/core/status.h"

namespace halftone::io {

// Gives the next bytes. Errors: also DataLoss if there are fewer.
using ReadNext = std::function<absl::Status(void* data, size_t bytes)>;

}  // namespace halftone::io
