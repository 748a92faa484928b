// Indices that arrive at run time, i64 or i32.
#pragma once

#include "halftone/graph/ir/types.h"
#include "halftone/kernels/kernel.h"

namespace halftone::kernels {

class RowIndices {
 public:
  explicit RowIndices(const ir::ValueType& type)
      : count_(type.num_elements()), wide_(type.dtype == DType::kI64) {}

  int64_t count() const { return count_; }
  int64_t At(const void* indices, int64_t i) const {
    return wide_ ? static_cast<const int64_t*>(indices)[i]
                 : static_cast<const int32_t*>(indices)[i];
  }
  // Whether all lie in [0, bound); if not, raises the fault (the first of a run is kept).
  bool Check(const void* indices, int64_t bound, RunState* state) const {
    for (int64_t i = 0; i < count_; ++i) {
      const int64_t index = At(indices, i);
      if (index >= 0 && index < bound) continue;
      if (!state->fault.raised) state->fault = {true, index, bound, i};
      return false;
    }
    return true;
  }

 private:
  int64_t count_;
  bool wide_;
};

}  // namespace halftone::kernels
