// A graph from a function, for tests of one step.
#pragma once

#include <functional>
#include <string>
#include <utility>

#include "halftone/halftone.h"

namespace halftone::testing {

// Example:
//   FnGraph g([](FnGraph& g, const nn::Values& in) -> nn::Values { return {in[0] * g.param("w")};
//   }); g.AddParam("w", Tensor::Of(DType::kF32, {2}, {1, 2}));
class FnGraph : public nn::Graph {
 public:
  using BuildFn = std::function<nn::Values(FnGraph&, const nn::Values&)>;
  explicit FnGraph(BuildFn fn) : nn::Graph("test"), fn_(std::move(fn)) {}
  nn::Values build(const nn::Values& in) override { return fn_(*this, in); }

  nn::Parameter AddParam(const std::string& name, const Tensor& value) {
    nn::Parameter parameter(value.shape(), ir::Initializer{}, value.dtype());
    HT_CHECK(parameter.set_value(value).ok());
    add_parameter(name, parameter);
    params_.emplace_back(name, parameter);
    return parameter;
  }
  // Requires: AddParam(name).
  const nn::Parameter& param(const std::string& name) const {
    for (const auto& entry : params_) {
      if (entry.first == name) return entry.second;
    }
    HT_CHECK(false, "no such parameter");
    return params_.front().second;
  }

  using nn::Graph::add_module;
  using nn::Graph::add_optimizer;
  using nn::Graph::add_scaler;
  using nn::Graph::parameters;
  using nn::Graph::set_grad_scaler;

 private:
  BuildFn fn_;
  std::vector<std::pair<std::string, nn::Parameter>> params_;
};

}  // namespace halftone::testing
