#include "halftone/passes/rewrite/pool_first.h"

#include <utility>
#include <vector>

#include "halftone/graph/ops/support/window.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// Whether each window along the axis has an element that is not padding.
bool AllWindowsReachIn(const ops::WindowAxis& axis) {
  const auto reaches_in = [&](int64_t o) {
    for (int64_t k = 0; k < axis.kernel; ++k) {
      const int64_t position = axis.Position(o, k);
      if (position >= 0 && position < axis.input) return true;
    }
    return false;
  };
  // Those in the middle reach in where the first and the last do, unless offsets step over the input.
  if (axis.dilation > axis.input) return axis.padding == 0;
  return axis.output > 0 && reaches_in(0) && reaches_in(axis.output - 1);
}

class PoolFirst : public Pass {
 public:
  const char* name() const override { return "pool-first"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const ir::UseMap uses(graph);
    std::vector<std::pair<ir::Node*, ir::Node*>> found;
    for (ir::Node* pool : Snapshot(graph)) {
      if (!IsOp(*pool, "max_pool2d") || !Applies(*pool, uses)) continue;
      found.emplace_back(pool->input(0).node, pool);
    }
    if (found.empty()) return false;
    for (const auto& [relu, pool] : found) HT_RETURN_IF_ERROR(Swap(*relu, *pool));
    context.stats["swapped"] += static_cast<int64_t>(found.size());
    HT_RETURN_IF_ERROR(graph.Sort());
    return true;
  }

 private:
  static bool Applies(const ir::Node& pool, const ir::UseMap& uses) {
    const ir::Node& relu = *pool.input(0).node;
    if (!IsOp(relu, "relu") || uses.uses(relu.output()).size() != 1) return false;
    if (uses.is_output(relu.output()) || uses.is_output(pool.output(1)) ||
        !uses.uses(pool.output(1)).empty()) {
      return false;
    }
    const ops::PoolGeometry g = ops::PoolGeometryOf(pool);
    return pool.output_type().num_elements() < relu.output_type().num_elements() &&
           AllWindowsReachIn(g.h) && AllWindowsReachIn(g.w);
  }

  // In place, so that both keep their names and what precision was decided for them.
  static absl::Status Swap(ir::Node& relu, ir::Node& pool) {
    pool.set_input(0, relu.input(0));
    pool.graph().ReplaceUses(pool.output(), relu.output());
    relu.set_input(0, pool.output());
    return Reinfer(relu);
  }
};

}  // namespace

std::unique_ptr<Pass> MakePoolFirst() { return std::make_unique<PoolFirst>(); }

}  // namespace halftone::passes
