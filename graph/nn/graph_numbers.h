// GraphNumbers: what a graph knows of its last training step, as named numbers for a log.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"

namespace halftone::nn {

class Graph;

class GraphNumbers {
 public:
  // `graph` must outlive it.
  explicit GraphNumbers(const Graph& graph) : graph_(graph) {}

  // Waits for the step, and visits the numbers that RunLog's comment lists. What is not known is
  // left out. Names stay valid until the graph has another optimizer or scaler; they are made once,
  // and nothing else is allocated.
  void ForEach(absl::FunctionRef<void(std::string_view tag, double value)> visit);

 private:
  struct Variable {
    std::string tag, name;
  };
  struct OptimizerNames {
    std::vector<Variable> rates;  // one for each group
    std::string norm_tag, steps_name;
  };
  void MakeNames();

  const Graph& graph_;
  std::vector<OptimizerNames> optimizers_;
  std::vector<Variable> scalers_;
};

}  // namespace halftone::nn
