// Model: a graph together with the values of its variables, as files of models hold it.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/core/tensor.h"

namespace halftone::ir {

class Graph;

struct Model {
  std::unique_ptr<Graph> graph;  // as traced
  // By the names of the graph's variables.
  std::map<std::string, Tensor> variables;
  // What the user should know of how it came about.
  std::vector<std::string> notes;

  Model();
  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();
};

// Whether each variable of the graph has a value of its type, and each value a variable. Errors:
// NotFound and InvalidArgument, naming the first that has not.
absl::Status CheckValues(const Model& model);

}  // namespace halftone::ir
