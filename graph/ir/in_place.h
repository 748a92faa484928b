// Which types an in-place pair of an op's record may be used for.
#pragma once

#include "halftone/graph/ir/types.h"

namespace halftone::ir {

// Whether element i of both types lies in the same bytes. Equal sizes in bytes are not enough: a
// broadcast i32[1] has as many as a result bool[4].
inline bool FitsInPlace(const ValueType& in, const ValueType& out) {
  return in.num_elements() == out.num_elements() && SizeOf(in.dtype) == SizeOf(out.dtype) &&
         in.layout == out.layout;
}

}  // namespace halftone::ir
