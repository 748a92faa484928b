// A graph whose build() is a function object, and shorthands for calling graphs.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <source_location>
#include <string>
#include <utility>
#include <vector>

#include "halftone/halftone.h"

namespace halftone::nn {

class FnGraph : public Graph {
 public:
  using Fn = std::function<Values(const Values&)>;
  explicit FnGraph(Fn fn = {}) : fn(std::move(fn)) {}
  Values build(const Values& in) override {
    ++builds;
    return fn(in);
  }
  using Graph::add_module;
  using Graph::add_optimizer;
  using Graph::add_parameter;
  using Graph::add_scaler;
  using Graph::named_parameters;
  using Graph::parameters;
  using Graph::set_grad_scaler;
  using Graph::split_parameters;

  Fn fn;
  int builds = 0;
};

inline Tensor F32(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::Of(DType::kF32, shape, values);
}
inline Tensor I64(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::Of(DType::kI64, shape, values);
}

// How an error begins that names a line of the calling file: "x_test.cc:7: ".
inline std::string At(int line, std::source_location here = std::source_location::current()) {
  const std::string path = here.file_name();
  return path.substr(path.rfind('/') + 1) + ":" + std::to_string(line) + ": ";
}

// The outputs of one call; fails the test and gives nothing on an error.
inline std::vector<Tensor> Call(Graph& graph, const std::vector<Tensor>& in) {
  absl::StatusOr<std::vector<Tensor>> out = graph(in);
  if (out.ok()) return *std::move(out);
  ADD_FAILURE() << Message(out.status());
  return {};
}

// The first output as doubles.
inline std::vector<double> Call1(Graph& graph, const std::vector<Tensor>& in) {
  const std::vector<Tensor> out = Call(graph, in);
  return out.empty() ? std::vector<double>() : out[0].ToVector();
}

inline absl::Status CallStatus(Graph& graph, const std::vector<Tensor>& in) {
  return graph(in).status();
}

}  // namespace halftone::nn
