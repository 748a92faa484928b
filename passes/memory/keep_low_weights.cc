#include "halftone/passes/memory/keep_low_weights.h"

#include <map>
#include <unordered_map>
#include <utility>

#include "halftone/graph/ops/support/optimizers.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ops::UpdatePort;

// A variable, and a dtype that it is cast to.
using LowCopy = std::pair<const ir::Node*, DType>;

// Where the kept casts of each are read last: the position of a node; the number of nodes: after
// the last one.
std::map<LowCopy, size_t> FindLastReads(const ir::Graph& graph) {
  std::map<LowCopy, size_t> last;
  std::unordered_map<const ir::Node*, LowCopy> holds;  // the casts, and reshapes of them
  const size_t end = graph.nodes().size();
  for (size_t p = 0; p < end; ++p) {
    const ir::Node& node = *graph.nodes()[p];
    if (IsKeptCast(node)) {
      const LowCopy copy{node.input(0).node, node.output_type().dtype};
      holds.emplace(&node, copy);
      last.emplace(copy, 0);
      continue;
    }
    for (const ir::Value& v : node.inputs()) {
      const auto held = holds.find(v.node);
      if (held == holds.end()) continue;
      if (IsStorageAlias(node)) {
        holds.emplace(&node, held->second);
      } else {
        last[held->second] = IsOp(node, "commit") ? end : std::max(last[held->second], p);
      }
    }
  }
  for (const ir::Output& output : graph.outputs()) {
    const auto held = holds.find(output.value.node);
    if (held != holds.end()) last[held->second] = end;
  }
  return last;
}

class KeepLowWeights : public Pass {
 public:
  const char* name() const override { return "keep-low-weights"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    if (!context.target->KeepsLowWeights()) return false;
    for (const auto& node : graph.nodes()) {
      if (node->op().is_marker) return false;
    }
    int64_t kept = 0, written = 0;
    for (const auto& node : graph.nodes()) {
      if (!MayBeKept(*node) || IsKeptCast(*node)) continue;
      node->mutable_attrs().Set("kept", true);
      ++kept;
    }
    const std::map<LowCopy, size_t> last_reads = FindLastReads(graph);
    const MemoryPlan plan = PlanMemory(graph);
    for (size_t p = 0; p < graph.nodes().size(); ++p) {
      ir::Node& node = *graph.nodes()[p];
      if (!MayWriteLow(node) || ops::LowCopyOf(node).has_value()) continue;
      // The cast would differ from a parameter that is written later, or not at all.
      if (plan.nodes[p].outputs[0].space != Slot::Space::kVariable) continue;
      for (const DType low : {DType::kF16, DType::kBF16}) {
        const auto read = last_reads.find({node.input(UpdatePort::kParam).node, low});
        if (read == last_reads.end() || read->second >= p) continue;
        node.mutable_attrs().Set("low", low);
        ++written;
        break;
      }
    }
    context.stats["kept_casts"] += kept;
    context.stats["written_by_updates"] += written;
    return kept + written > 0;
  }
};

}  // namespace

bool MayBeKept(const ir::Node& node) {
  if (!IsCast(node) || !IsOp(*node.input(0).node, "variable")) return false;
  const ir::ValueType &from = node.input_type(0), &to = node.output_type();
  return IsLow(to.dtype) && from.dtype != to.dtype && from.layout == to.layout;
}

bool IsKeptCast(const ir::Node& node) {
  return IsCast(node) && node.attrs().GetBool("kept") && MayBeKept(node);
}

bool MayWriteLow(const ir::Node& node) {
  const ir::AttrValue* low = node.attrs().Find("low");
  return low != nullptr && ir::TypeOf(*low) == ir::AttrType::kDType;
}

std::unique_ptr<Pass> MakeKeepLowWeights() { return std::make_unique<KeepLowWeights>(); }

}  // namespace halftone::passes
