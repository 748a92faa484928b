// Numbers as text: the shortest digits that read back to the same bits.
//
// "nan", "inf" and "-inf" are words. A NaN with other bits than the usual one is its bit pattern in
// hexadecimal: 0x7fc00001.
#pragma once

#include <cstdint>
#include <string>

#include "halftone/core/dtype.h"
#include "halftone/core/status.h"

namespace halftone::ir {

std::string FormatDouble(double x);
// The whole of `text` must be one number. Errors: InvalidArgument (not a number), OutOfRange (does
// not fit the type).
absl::StatusOr<double> ParseDouble(const std::string& text);
absl::StatusOr<int64_t> ParseInt(const std::string& text);

// Element `i` of an array of `dtype`. Bools are "true" and "false".
std::string FormatElement(const void* data, DType dtype, int64_t i);
// The inverse; "0" and "1" also read as bools.
absl::Status ParseElement(const std::string& text, DType dtype, void* data, int64_t i);

}  // namespace halftone::ir
