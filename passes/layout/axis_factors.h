// Where the elements of a value go on their way through nodes that only move them: what each axis is
// made of, in factors of the value that the way began with.
#pragma once

#include <cstdint>
#include <list>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

class AxisFactors {
 public:
  explicit AxisFactors(const ir::ValueType& type);

  // Goes through `node`, which reads the value that the way has reached. Whether it can: a transpose, a
  // relayout, or a reshape that splits and joins whole factors. Requires, if not: no other call.
  bool Follow(const ir::Node& node);

  // The way from the bytes of the first value to those of the value reached, row by row, as a transpose
  // of as few axes as it takes; one axis, or none, if the bytes stay in order.
  struct Permutation {
    std::vector<int64_t> shape, perm;
  };
  Permutation OfStorage() const;

 private:
  struct Factor {
    int64_t extent;
  };
  using Factors = std::list<Factor>;  // of which addresses hold while others are split
  using Run = std::vector<Factors::iterator>;

  Run InStorageOrder() const;
  bool Reshape(const Shape& shape);

  Factors first_;          // in the order of the first value's storage
  std::vector<Run> axes_;  // of the value reached
  ir::Layout layout_;      // likewise
};

}  // namespace halftone::passes
