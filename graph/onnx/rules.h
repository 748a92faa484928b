// The one table of what ONNX's operators are here and ours there. Export, import, docs/onnx.md and
// tests read it; an operator is added in a file of rules/ and nowhere else.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "halftone/graph/ir/builder.h"

namespace halftone::onnx {

class NodeExport;
class NodeImport;

// Makes what a node of ONNX computes: its outputs, in order; fewer where later ones are not covered.
// Mistakes go to NodeImport::Fail.
using Exprs = std::vector<ir::Expr>;
using ImportFn = std::function<Exprs(NodeImport&)>;
// Makes the nodes of ONNX that compute a node of ours. Mistakes go to NodeExport::Fail.
using ExportFn = std::function<void(NodeExport&)>;

// An attribute that both sides have, as a float, and its value where ONNX's node lacks it.
struct FloatPair {
  std::string onnx, ours;
  double fallback;
};

struct ImportRule {
  ImportFn make;
  std::string as;      // what it becomes, for the docs: "matmul, add"
  std::string limits;  // what is not covered, for the docs; "" if everything is
};
struct ExportRule {
  ExportFn make;
  std::string as;  // "MatMul, Add"
};

class Rules {
 public:
  static const Rules& All();

  // Null: not covered.
  const ImportRule* FindImport(const std::string& op_type) const;
  const ExportRule* FindExport(const std::string& op) const;
  // Why an op of ours has no rule of export; "" if it has one, or a decomposition stands in for it.
  static std::string WhyNotExported(const ir::OpRecord& op);

  const std::map<std::string, ImportRule>& imports() const { return imports_; }
  const std::map<std::string, ExportRule>& exports() const { return exports_; }

  // For the files of rules/. One operator on each side, with operands in the same order.
  void Same(const std::string& op_type, const std::string& op, const std::vector<FloatPair>& = {});
  void Import(const std::string& op_type, const std::string& as, ImportFn make,
              const std::string& limits = "");
  void Export(const std::string& op, const std::string& as, ExportFn make);

 private:
  Rules();
  std::map<std::string, ImportRule> imports_;
  std::map<std::string, ExportRule> exports_;
};

// One of each file of rules/.
void AddActivationRules(Rules& rules);
void AddArithmeticRules(Rules& rules);
void AddCompareRules(Rules& rules);
void AddConvolutionRules(Rules& rules);
void AddEinsumRules(Rules& rules);
void AddIndexRules(Rules& rules);
void AddLossRules(Rules& rules);
void AddMatrixRules(Rules& rules);
void AddNormRules(Rules& rules);
void AddPoolingRules(Rules& rules);
void AddRecurrenceRules(Rules& rules);
void AddReductionRules(Rules& rules);
void AddResizeRules(Rules& rules);
void AddShapeRules(Rules& rules);
void AddSourceRules(Rules& rules);
void AddAttentionRules(Rules& rules);

// docs/onnx.md's tables.
std::string CoverageText();

}  // namespace halftone::onnx
