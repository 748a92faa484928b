// Which values of a compiled step carry a loss scale.
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "halftone/graph/ir/graph.h"

namespace halftone::runtime {

class ScaledValues {
 public:
  // The values of a graph after the pipeline that are proportional to the variable
  // `scale_variable`, "scaler0.scale": what it multiplies, up to where it is divided out again.
  ScaledValues(const ir::Graph& graph, const std::string& scale_variable);

  bool Has(ir::Value value) const { return Find(value) == 1; }
  // The scaled values of which `value` is made, the last ones on each way: itself, or those that
  // were unscaled to make it. In the order of the graph.
  std::vector<ir::Value> LastBefore(ir::Value value) const;

 private:
  using Key = std::pair<int64_t, int>;
  // The power of the scale that it is proportional to.
  int Find(ir::Value value) const;
  int PowerOf(const ir::Node& node) const;

  std::set<Key> scaled_, inverse_;
};

}  // namespace halftone::runtime
