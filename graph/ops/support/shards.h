// Where gradients and weights lie in the buffers of reduce_scatter_start and all_gather_start.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/core/shape.h"
#include "halftone/core/status.h"
#include "halftone/graph/ir/attribute.h"

namespace halftone::ops {

// Tensors in a buffer, each in the part of the rank that owns it, in the order in which they are
// listed. A part has one element more, its last, for the word of a failed rank, and is rounded up to a multiple
// of 32; parts lie in the order of the ranks.
struct ShardLayout {
  struct Piece {
    Shape shape;
    int64_t owner;
    int64_t offset;  // in elements, from the front of the buffer
  };
  std::vector<Piece> pieces;
  std::vector<int64_t> parts;  // elements of each rank's

  // Of the attributes `ranks`, `rank`, `shapes` and `owners`. Errors: InvalidArgument, beginning with `op`:
  // one of them out of range; lists that differ in length; more than 2^39 elements.
  static absl::StatusOr<ShardLayout> Of(const std::string& op, const ir::Attributes& attrs);

  // Of all parts.
  int64_t elements() const;
  // And of what the others send for that of `rank`, and 32 more (distributed/shards.h, whose size it is; the kernel
  // checks that). Of one rank: of its part alone.
  int64_t ScatterElements(int64_t rank) const;
  // The positions of the pieces that `rank` owns.
  std::vector<size_t> OwnedBy(int64_t rank) const;
};

}  // namespace halftone::ops
