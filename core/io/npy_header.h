// The dictionary in the header of an .npy file.
#pragma once

#include <string>

#include "halftone/core/dtype.h"
#include "halftone/core/shape.h"

namespace halftone::io {

struct NpyHeader {
  DType dtype = DType::kF32;
  bool fortran_order = false;
  Shape shape;
};

// Reads "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }", the keys in any order, with
// spaces and newlines wherever Python allows them. Untrusted. Errors: InvalidArgument saying where
// and what was expected.
absl::StatusOr<NpyHeader> ParseNpyHeader(const std::string& text);
// The same text, as NumPy writes it.
std::string FormatNpyHeader(const NpyHeader& header);

}  // namespace halftone::io
