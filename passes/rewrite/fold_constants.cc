#include "halftone/passes/rewrite/fold_constants.h"

#include <algorithm>

#include "halftone/graph/ir/evaluator.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

bool CanFold(const ir::Node& node) {
  const ir::OpRecord& op = node.op();
  if (op.is_random || op.communicates || op.has_side_effect) return false;
  if (op.is_marker || op.can_fault()) return false;
  if (node.num_inputs() == 0) return false;
  int64_t largest = kMaxFoldedElements;
  for (ir::Value v : node.inputs()) {
    if (ConstantValue(v) == nullptr) return false;
    largest = std::max(largest, v.type().num_elements());
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    const ir::ValueType& type = node.output_type(i);
    if (type.num_elements() > largest || type.layout != ir::Layout::kPlain) return false;
  }
  return true;
}

// What a value counts towards the bounds.
int64_t LargeBytes(const ir::ValueType& type) {
  return type.num_elements() > kMaxFoldedElements ? type.num_bytes() : 0;
}

class FoldConstants : public Pass {
 public:
  const char* name() const override { return "fold-constants"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    if (context.evaluator == nullptr) return false;
    std::vector<ir::Node*> folded;
    Replacements replacements;
    for (ir::Node* node : Snapshot(graph)) {
      replacements.Update(*node);
      if (!CanFold(*node)) continue;
      // A short file may ask for many large results: what is over the bound is left to the run.
      // Small ones are paid for by the length of the file.
      int64_t bytes = 0;
      for (int i = 0; i < node->num_outputs(); ++i) bytes += LargeBytes(node->output_type(i));
      int64_t read_bytes = 0;
      for (ir::Value v : node->inputs()) read_bytes += LargeBytes(v.type());
      if (bytes > kMaxFoldedBytes - context.folded_bytes) continue;
      if (read_bytes > kMaxFoldReadBytes - context.fold_read_bytes) continue;
      std::vector<Tensor> inputs;
      for (ir::Value v : node->inputs()) inputs.push_back(*ConstantValue(v));
      absl::StatusOr<std::vector<Tensor>> results = context.evaluator->Evaluate(*node, inputs);
      if (results.status().code() == absl::StatusCode::kUnimplemented) continue;
      if (!results.ok()) return Annotate(results.status(), node->Label() + ": ");
      context.folded_bytes += bytes;
      context.fold_read_bytes += read_bytes;
      ir::Builder b = BuilderLike(*node, name());
      for (int i = 0; i < node->num_outputs(); ++i) {
        b.NameNext(node->name());
        const ir::Expr constant = b.Constant((*results)[i]);
        HT_RETURN_IF_ERROR(b.status());
        replacements.Replace(node->output(i), constant.value());
      }
      folded.push_back(node);
    }
    replacements.Finish(graph);
    graph.Remove(folded);
    context.stats["folded"] += static_cast<int64_t>(folded.size());
    return !folded.empty();
  }
};

}  // namespace

std::unique_ptr<Pass> MakeFoldConstants() { return std::make_unique<FoldConstants>(); }

}  // namespace halftone::passes
