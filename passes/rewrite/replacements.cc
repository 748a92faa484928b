#include "halftone/passes/rewrite/replacements.h"

#include "halftone/core/check.h"

namespace halftone::passes {

void Replacements::Replace(ir::Value from, ir::Value to) {
  to = Current(to);
  HT_CHECK(!(from == to), "a value is replaced by itself");
  HT_CHECK(current_.emplace(from, to).second, "a value is replaced twice");
}

ir::Value Replacements::Current(ir::Value v) const {
  for (auto it = current_.find(v); it != current_.end(); it = current_.find(v)) v = it->second;
  return v;
}

void Replacements::Update(ir::Node& node) const {
  if (current_.empty()) return;
  for (int i = 0; i < node.num_inputs(); ++i) {
    const ir::Value current = Current(node.input(i));
    if (!(current == node.input(i))) node.set_input(i, current);
  }
}

void Replacements::Finish(ir::Graph& graph) const {
  if (current_.empty()) return;
  for (const auto& node : graph.nodes()) Update(*node);
  for (ir::Output& output : graph.outputs()) output.value = Current(output.value);
}

}  // namespace halftone::passes
