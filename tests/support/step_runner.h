// Runs training steps from graph text: lowers the markers with the passes of precision,
// differentiation and scaling, then evaluates node by node on reference kernels and carries the
// variables over. What it runs is the graph that the passes made, so a test of it is a test of
// them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/runtime/executable.h"
#include "halftone/graph/runtime/variable_store.h"

namespace halftone::testing {

using TensorMap = std::map<std::string, Tensor>;

class StepRunner {
 public:
  // insert-amp-casts, verify-amp-dtypes, trim-amp-islands, autodiff, scale-losses,
  // insert-optimizers, update-scalers, decompose-unsupported. Errors: those of the parser and of
  // the passes.
  static absl::StatusOr<StepRunner> Compile(const std::string& text,
                                            const std::string& target = "cpu-avx512bf16");
  // Ends the test program on an error.
  static StepRunner CompileOrDie(const std::string& text,
                                 const std::string& target = "cpu-avx512bf16");

  // One step: outputs by name (by position, "0", "1", where they have none); then the commits are
  // applied. Inputs by name. Errors: NotFound for a missing input, those of the kernels, Internal
  // where the two runs disagree; then no variable changes.
  absl::StatusOr<TensorMap> Step(const TensorMap& inputs = {});
  TensorMap StepOrDie(const TensorMap& inputs = {});

  // Values of all variables; a constant initialiser has been applied. May be assigned, to carry
  // state between graphs.
  TensorMap& state() { return state_; }
  // The single element of a variable.
  double at(const std::string& variable) const;

  // The graph that the reference kernels run.
  const ir::Graph& graph() const { return *graph_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  // What one run makes of the state.
  struct Result {
    TensorMap outputs;
    TensorMap committed;
  };
  absl::Status CompileForCpu(std::unique_ptr<ir::Graph> graph);
  absl::StatusOr<Result> RunReference(const TensorMap& inputs);
  absl::StatusOr<Result> RunCpu(const TensorMap& inputs);
  absl::Status Compare(const TensorMap& reference, const TensorMap& cpu) const;

  std::unique_ptr<ir::Graph> graph_;
  std::unique_ptr<runtime::VariableStore> store_;
  std::unique_ptr<runtime::Executable> executable_;
  TensorMap state_;
  std::vector<std::string> notes_;
  uint64_t run_count_ = 0;
};

// A rank-0 or 1-d f32 tensor.
Tensor F32(double value);
Tensor F32(std::initializer_list<double> values);

}  // namespace halftone::testing
