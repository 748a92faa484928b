// Models for tests of import, written in the form that a file has, and graphs that run.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "halftone/graph/ir/text.h"
#include "halftone/graph/onnx/onnx.h"
#include "halftone/graph/onnx/parse.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/tests/support/graph_runner.h"

namespace halftone::onnx {

inline Tensor Floats(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::Of(DType::kF32, shape, values);
}
inline Tensor Longs(const Shape& shape, std::initializer_list<double> values) {
  return Tensor::Of(DType::kI64, shape, values);
}

inline ValueInfo Info(const std::string& name, DType dtype, const std::vector<int64_t>& extents) {
  ValueInfo info{name, dtype, std::vector<Dim>()};
  for (const int64_t extent : extents) info.dims->push_back({extent, ""});
  return info;
}

// x: f32[2,3] -> y: f32, by these nodes.
inline Model ModelOf(std::vector<Node> nodes, std::vector<NamedTensor> initializers = {}) {
  Model model;
  model.name = "test";
  model.inputs = {Info("x", DType::kF32, {2, 3})};
  model.outputs = {{"y", DType::kF32, std::nullopt}};
  model.nodes = std::move(nodes);
  model.initializers = std::move(initializers);
  return model;
}

inline absl::StatusOr<ImportedModel> Import(const Model& model, const ImportOptions& options = {}) {
  const auto bytes = SerializeModel(model);
  if (!bytes.ok()) return bytes.status();
  return FromOnnxBytes(*bytes, options);
}

// The outputs by reference kernels; fails the test and gives nothing on an error.
inline std::vector<Tensor> Outputs(const ir::Graph& graph, const testing::GraphFeeds& feeds) {
  auto results = testing::RunGraph(graph, feeds, kernels::ReferenceEvaluator());
  if (results.ok()) return std::move(results->outputs);
  ADD_FAILURE() << Message(results.status()) << "\n" << graph.ToString();
  return {};
}

// Of a model that is imported and run.
inline std::vector<Tensor> Outputs(const Model& model, const std::map<std::string, Tensor>& inputs,
                                   const ImportOptions& options = {}) {
  const auto imported = Import(model, options);
  if (imported.ok()) return Outputs(*imported->graph, {inputs, imported->variables});
  ADD_FAILURE() << Message(imported.status());
  return {};
}

}  // namespace halftone::onnx
