#include "halftone/passes/rewrite/simplify.h"

#include <map>

#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/passes/rewrite/simplify_rules.h"

namespace halftone::passes {
namespace {

using RulesByOp = std::multimap<std::string, const SimplifyRule*>;

RulesByOp Rules() {
  RulesByOp rules;
  for (const auto* family : {&ArithmeticRules(), &CastRules(), &ShapeRules()}) {
    for (const SimplifyRule& rule : *family) rules.emplace(rule.op, &rule);
  }
  return rules;
}

class Simplify : public Pass {
 public:
  const char* name() const override { return "simplify"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    precision_is_open_ = FindMarker(graph, "amp") != nullptr;
    bool changed = false;
    std::vector<ir::Node*> replaced;
    Replacements replacements;
    for (ir::Node* node : Snapshot(graph)) {
      replacements.Update(*node);
      ir::Value value = node->output();
      while (value == node->output()) {
        value = ApplyFirst(*node, context);
        changed |= value.valid();
      }
      if (!value.valid()) continue;
      HT_CHECK(value.type() == node->output_type(), "a simplification changed a type");
      replacements.Replace(node->output(), value);
      replaced.push_back(node);
    }
    replacements.Finish(graph);
    graph.Remove(replaced);
    return changed;
  }

 private:
  ir::Value ApplyFirst(ir::Node& node, PassContext& context) const {
    const auto [first, last] = rules_.equal_range(node.op().name);
    for (auto it = first; it != last; ++it) {
      if (it->second->after_precision && precision_is_open_) continue;
      const ir::Value value = it->second->apply(node);
      if (!value.valid()) continue;
      ++context.stats[it->second->name];
      return value;
    }
    return {};
  }

  const RulesByOp rules_ = Rules();
  bool precision_is_open_ = false;
};

}  // namespace

std::unique_ptr<Pass> MakeSimplify() { return std::make_unique<Simplify>(); }

}  // namespace halftone::passes
