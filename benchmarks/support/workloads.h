// The reference workloads: model, loss, optimizer and data of each, those of
// benchmarks/peers/torch_workloads.py. Also used by the parity test.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "halftone/halftone.h"

namespace halftone::benchmarks {

struct Workload {
  std::string name;
  std::unique_ptr<nn::Module> model;
  // What the loss takes: from the hash, fixed.
  std::vector<Tensor> data;
  std::function<nn::Value(nn::Module& model, const nn::Values& in)> loss;
  std::function<optim::Optimizer(const optim::ParameterList&)> optimizer;
  int steps = 3;  // that a measurement takes by default

  int64_t num_parameters() const;
  // Every parameter from the hash, in the order of named_parameters(): uniform in
  // +-1/sqrt(fan_in), the factors of norms around 1.
  absl::Status SetHashWeights();
};

// `batch`: images or sequences; 0: as many as the workload has. Errors: InvalidArgument, with the
// names there are.
absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const std::string& name, int64_t batch = 0);

// What --amp says: "off", "bf16" or "f16". Errors: InvalidArgument.
absl::Status SetPrecision(nn::Graph& graph, const std::string& amp);

// In: the data; out: the loss, before the update.
class TrainingStep : public nn::Graph {
 public:
  // `workload` outlives the graph.
  explicit TrainingStep(Workload& workload);
  nn::Values build(const nn::Values& in) override;

 private:
  Workload& workload_;
};

// In: the data; out: the loss and the gradient of each parameter, in the order of
// named_parameters().
class GradientStep : public nn::Graph {
 public:
  explicit GradientStep(Workload& workload);
  nn::Values build(const nn::Values& in) override;

 private:
  Workload& workload_;
};

}  // namespace halftone::benchmarks
