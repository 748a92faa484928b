// docs/onnx.md, made of the rules.
#include "halftone/graph/onnx/model.h"
#include "halftone/graph/onnx/rules.h"

namespace halftone::onnx {

std::string CoverageText() {
  const Rules& rules = Rules::All();
  std::string text =
      "# ONNX operators\n\n"
      "What `halftone_dump --format onnx`, `nn::Graph::export_onnx` and the tools' reading of `.onnx` files cover\n"
      "(see [interchange](guide/interchange.md)). Written by `halftone_opt --onnx` from the rules in "
      "`graph/onnx/rules`; a test keeps\nboth equal.\n\n";
  text += Concat("## Import\n\n", rules.imports().size(), " operators, of opset ", kOldestOpset,
                 " to ", kNewestOpset,
                 ". Element types: float, double, float16, bfloat16, int64, int32, "
                 "uint8, bool, where the ops they\nbecome take them.\n\n"
                 "| ONNX | becomes | not covered |\n| --- | --- | --- |\n");
  for (const auto& [op_type, rule] : rules.imports()) {
    text += Concat("| ", op_type, " | ", rule.as, " | ", rule.limits, " |\n");
  }
  text += "\n## Export\n\nOpset 17.\n\n| op | becomes |\n| --- | --- |\n";
  std::map<std::string, std::string> reasons;
  for (const ir::OpRecord* op : ir::OpRegistry::Global().All()) {
    const ExportRule* rule = rules.FindExport(op->name);
    const std::string reason = Rules::WhyNotExported(*op);
    if (rule != nullptr) {
      text += Concat("| ", op->name, " | ", rule->as, " |\n");
    } else if (!reason.empty()) {
      reasons[reason] += (reasons[reason].empty() ? "`" : ", `") + op->name + "`";
    }
  }
  text +=
      "\nOps that are not in the table and have a decomposition become what it is made of. Not exported are:\n\n";
  for (const auto& [reason, ops] : reasons) text += Concat("* ", reason, ": ", ops, "\n");
  return text;
}

}  // namespace halftone::onnx
