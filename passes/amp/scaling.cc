#include "halftone/passes/amp/scaling.h"

#include "halftone/optim/grad_scaler.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {

ir::Node* FindScaler(const ir::Graph& graph, const std::string& name) {
  for (ir::Node* scaler : FindMarkers(graph, "scaler")) {
    if (scaler->attrs().GetString("name") == name) return scaler;
  }
  return nullptr;
}

ir::Expr ScalerVariable(ir::Builder& b, const ir::Node& scaler, const std::string& field) {
  const ir::Attributes& attrs = scaler.attrs();
  const std::string name = attrs.GetString("name");
  for (const ir::Variable& variable :
       amp::ScalerVariables(name, attrs.GetFloat("init_scale"), attrs.GetInt("hysteresis"))) {
    if (variable.name == name + "." + field) return b.Var(variable);
  }
  HT_CHECK(false, "a scaler has no such state");
}

absl::StatusOr<int64_t> GuardBuffers(ir::Graph& graph, const ir::Node& origin, const char* pass,
                                     const std::vector<ir::Value>& flags) {
  ir::Builder b = BuilderLike(origin, pass);
  int64_t guarded = 0;
  for (ir::Node* commit : graph.commits()) {
    const ir::Variable* found = graph.FindVariable(commit->attrs().GetString("variable"));
    if (found == nullptr || found->kind != ir::VariableKind::kBuffer) continue;
    const ir::Variable variable = *found;  // declaring a variable moves the table
    const ir::Expr kept =
        b.Op("where", {AllOf(b, flags), b.Wrap(commit->input(0)), b.Var(variable)});
    HT_RETURN_IF_ERROR(b.status());
    commit->set_input(0, kept.value());
    ++guarded;
  }
  return guarded;
}

ir::Expr AllOf(ir::Builder& b, const std::vector<ir::Value>& flags) {
  if (flags.empty()) return b.Scalar(DType::kBool, 1);
  ir::Expr all = b.Wrap(flags[0]);
  for (size_t i = 1; i < flags.size(); ++i) all = b.Op("logical_and", {all, b.Wrap(flags[i])});
  return all;
}

}  // namespace halftone::passes
