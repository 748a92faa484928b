// ValueRanges: the range of every value of a graph, from constants and masks forward through the
// `range` of each op's record.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::passes {

class ValueRanges {
 public:
  // A bool lies in 0..1, a u8 in 0..255, and what the user made 16-bit within f16's range, up to its
  // ends: masks do. What insert-amp-casts made 16-bit is looked at as the f32 value it stands for.
  explicit ValueRanges(const ir::Graph& graph);

  const ir::ValueRange& of(ir::Value value) const;
  std::vector<ir::ValueRange> OfInputs(const ir::Node& node) const;

 private:
  std::map<int64_t, std::vector<ir::ValueRange>> ranges_;  // by node id, one per output
};

// Why a value of this range may leave the range of `low`, or nothing. What is known may lie beyond
// it. What is unknown has its share: in a sum half of the range, in a product its root, so that sums
// and products of two unknowns are taken to fit, and scores with a mask of -60000 are not.
// "[-65504, 0] and a value of unknown size may leave f16".
std::optional<std::string> WhyLeaves(const ir::ValueRange& range, DType low);
// The same of what is known alone: whether its ends have no number in `low`.
std::optional<std::string> WhyBeyond(const ir::ValueRange& range, DType low);

}  // namespace halftone::passes
