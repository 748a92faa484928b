#include "halftone/passes/rewrite/decompose_unsupported.h"

#include "halftone/passes/rewrite/decompose.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

class DecomposeUnsupported : public Pass {
 public:
  const char* name() const override { return "decompose-unsupported"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    int64_t decomposed = 0;
    // A decomposition may use ops that need one themselves; each round removes one level.
    for (int depth = 0;; ++depth) {
      std::vector<ir::Node*> unsupported;
      for (ir::Node* node : Snapshot(graph)) {
        const ir::OpRecord& op = node->op();
        const bool only_acts = op.has_side_effect && !op.communicates;
        if (IsSource(*node) || only_acts || op.is_marker) continue;
        if (!context.target->CanRun(op.name)) unsupported.push_back(node);
      }
      if (unsupported.empty()) break;
      if (depth == kMaxDepth) {
        return Internal(unsupported.front()->Label(), ": the decomposition does not end");
      }
      for (const ir::Node* node : unsupported) {
        if (!node->op().decompose) {
          return Unimplemented(node->Label(), ": ", context.target->name(), " has no kernel for ",
                               node->op().name, ", and the op has no decomposition");
        }
      }
      HT_RETURN_IF_ERROR(ReplaceByDecompositions(graph, unsupported, name()));
      decomposed += static_cast<int64_t>(unsupported.size());
    }
    context.stats["decomposed"] += decomposed;
    return decomposed > 0;
  }

 private:
  static constexpr int kMaxDepth = 32;
};

}  // namespace

std::unique_ptr<Pass> MakeDecomposeUnsupported() {
  return std::make_unique<DecomposeUnsupported>();
}

}  // namespace halftone::passes
