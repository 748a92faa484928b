// A step whose every value can be looked at.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "halftone/tools/support/step.h"

namespace halftone::tools {

using Values = std::map<std::pair<int64_t, int>, Tensor>;  // by node id and output

// Every computed value is an output, so nothing is computed in place: kernels and their operands are
// otherwise those of an ordinary run.
class KeptStep {
 public:
  // Errors: those of Step::Create.
  static absl::StatusOr<KeptStep> Create(const ir::Graph& lowered, const Device& device,
                                         uint64_t seed, runtime::VariableStore& store);

  const ir::Graph& graph() { return step_.executable().graph(); }
  // What a step starts from: feeds, variables as they are now (copied: the step moves them) and
  // constants.
  Values Sources(const std::vector<Tensor>& feeds);
  // The sources, and what the step makes of them. Errors: those of Step::Run.
  absl::StatusOr<Values> Run(const std::vector<Tensor>& feeds, uint64_t run_count);
  // By node id; nodes that no kernel carries out are missing.
  std::map<int64_t, std::string> KernelNames();

 private:
  KeptStep(Step step, runtime::VariableStore& store) : step_(std::move(step)), store_(&store) {}

  Step step_;
  runtime::VariableStore* store_;
};

}  // namespace halftone::tools
