// Splitting named parameters into two lists, for the groups of an optimizer.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/nn/parameter.h"
#include "halftone/optim/parameter_ref.h"

namespace halftone::nn {

using NamedParameters = std::vector<std::pair<std::string, Parameter>>;

// Each parameter once, in the order of the names. A tied parameter has several names and matches if
// one of them does.
struct ParameterSplit {
  optim::ParameterList matching;
  optim::ParameterList rest;
};

// Example: biases and the scales of norms have one axis:
//   split_parameters(named, [](const auto&, const Parameter& p) { return p.shape().rank() < 2; })
ParameterSplit split_parameters(
    const NamedParameters& named,
    const std::function<bool(const std::string& name, const Parameter& parameter)>& matches);

// Names that one of `patterns` matches as a whole; `*` any run, `?` one character, as in policies
// of mixed precision: {"*.bias", "norm?.*"}. Errors: InvalidArgument for a pattern that matches no
// name.
absl::StatusOr<ParameterSplit> split_parameters(const NamedParameters& named,
                                                const std::vector<std::string>& patterns);

}  // namespace halftone::nn
