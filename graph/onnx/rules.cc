#include "halftone/graph/onnx/rules.h"

#include "halftone/core/check.h"
#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/node_import.h"

namespace halftone::onnx {

const Rules& Rules::All() {
  static const auto* const rules = new Rules();
  return *rules;
}

Rules::Rules() {
  AddSourceRules(*this);
  AddArithmeticRules(*this);
  AddCompareRules(*this);
  AddActivationRules(*this);
  AddMatrixRules(*this);
  AddEinsumRules(*this);
  AddConvolutionRules(*this);
  AddPoolingRules(*this);
  AddNormRules(*this);
  AddAttentionRules(*this);
  AddRecurrenceRules(*this);
  AddReductionRules(*this);
  AddShapeRules(*this);
  AddIndexRules(*this);
  AddResizeRules(*this);
  AddLossRules(*this);
}

const ImportRule* Rules::FindImport(const std::string& op_type) const {
  const auto rule = imports_.find(op_type);
  return rule == imports_.end() ? nullptr : &rule->second;
}

const ExportRule* Rules::FindExport(const std::string& op) const {
  const auto rule = exports_.find(op);
  return rule == exports_.end() ? nullptr : &rule->second;
}

void Rules::Import(const std::string& op_type, const std::string& as, ImportFn make,
                   const std::string& limits) {
  const bool added = imports_.emplace(op_type, ImportRule{std::move(make), as, limits}).second;
  HT_CHECK(added, "an operator of ONNX has two rules of import");
}

void Rules::Export(const std::string& op, const std::string& as, ExportFn make) {
  const bool added = exports_.emplace(op, ExportRule{std::move(make), as}).second;
  HT_CHECK(added, "an op has two rules of export");
}

void Rules::Same(const std::string& op_type, const std::string& op,
                 const std::vector<FloatPair>& floats) {
  Import(op_type, op, [op, floats](NodeImport& n) -> Exprs {
    ir::Attributes attrs;
    for (const FloatPair& pair : floats) attrs.Set(pair.ours, n.Float(pair.onnx, pair.fallback));
    return {n.Result(op, n.inputs(), std::move(attrs))};
  });
  Export(op, op_type, [op_type, floats](NodeExport& n) {
    ir::Attributes attrs;
    for (const FloatPair& pair : floats) attrs.Set(pair.onnx, n.attrs().GetFloat(pair.ours));
    n.Give(op_type, n.ins(), std::move(attrs));
  });
}

std::string Rules::WhyNotExported(const ir::OpRecord& op) {
  const std::string& name = op.name;
  const auto ends = [&](const std::string& end) {
    return name.size() > end.size() && name.compare(name.size() - end.size(), end.size(), end) == 0;
  };
  if (op.communicates) return "part of a training step, not of the function that is exported";
  if (All().FindExport(name) != nullptr || op.decompose != nullptr) return "";
  if (name == "input" || name == "variable" || name == "constant") return "";
  if (op.is_marker) return "a pass lowers it; evaluation has none";
  if (name == "commit" || ends("_update") || ends("_update_rows") || name == "grad_stats" ||
      name == "loss_seed" || name.starts_with("f8_")) {
    return "part of a training step, not of the function that is exported";
  }
  if (ends("_grad") || ends("_grad_rows") || name.find("_grad_") != std::string::npos) {
    return "part of a gradient; ONNX has operators for forward graphs only";
  }
  if (op.is_random) return "ONNX does not say which numbers are drawn, so values would differ";
  return "no rule covers it";
}

}  // namespace halftone::onnx
