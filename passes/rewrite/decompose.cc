#include "halftone/passes/rewrite/decompose.h"

#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {

namespace {

absl::Status AppendDecomposition(ir::Node& node, const char* pass, Replacements& replacements) {
  ir::Graph& graph = node.graph();
  const ir::OpRecord& op = node.op();
  HT_CHECK(op.decompose != nullptr, "the op has no decomposition");
  const size_t nodes_before = graph.nodes().size();
  ir::Builder b = BuilderLike(node, pass);
  std::vector<ir::Expr> inputs;
  for (ir::Value v : node.inputs()) {
    const bool widen = op.amp.accumulates_in_f32 && IsLow(v.dtype());
    inputs.push_back(widen ? b.Cast(b.Wrap(v), DType::kF32) : b.Wrap(v));
  }
  std::vector<ir::Expr> outputs = op.decompose(b, inputs, node.attrs());
  HT_RETURN_IF_ERROR(Annotate(b.status(), node.Label() + ": decomposition: "));
  if (static_cast<int>(outputs.size()) != node.num_outputs()) {
    return Internal(node.Label(), ": the decomposition gives ", outputs.size(),
                    " outputs; expected ", node.num_outputs());
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    const ir::ValueType& type = node.output_type(i);
    const ir::Expr result = IsFloat(type.dtype) ? b.Cast(outputs[i], type.dtype) : outputs[i];
    HT_RETURN_IF_ERROR(b.status());
    if (result.type() != type) {
      return Internal(node.Label(), ": the decomposition gives ", result.type(), " as output ", i,
                      "; expected ", type);
    }
    replacements.Replace(node.output(i), result.value());
  }
  for (size_t i = nodes_before; i < graph.nodes().size(); ++i) {
    graph.nodes()[i]->amp = node.amp;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReplaceByDecompositions(ir::Graph& graph, const std::vector<ir::Node*>& nodes,
                                     const char* pass) {
  Replacements replacements;
  for (ir::Node* node : nodes) {
    replacements.Update(*node);
    HT_RETURN_IF_ERROR(AppendDecomposition(*node, pass, replacements));
  }
  replacements.Finish(graph);
  graph.Remove(nodes);
  return absl::OkStatus();
}

}  // namespace halftone::passes
