// GraphState: the values behind what a graph declared: saving, loading, and single numbers.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "halftone/core/status.h"
#include "halftone/graph/nn/declaration.h"
#include "halftone/graph/nn/steps_under_way.h"
#include "halftone/graph/runtime/load_options.h"

namespace halftone::nn {

// The counter of random ops in a saved state.
inline constexpr char kRunCount[] = "run_count";
Tensor CountTensor(uint64_t count);

class GraphState {
 public:
  // Both must outlive it.
  GraphState(Declaration& declared, RunCounts& counts) : declared_(declared), counts_(counts) {}

  // Callers of these three hold the lock. See the functions of Graph.
  absl::Status Initialize(uint64_t seed);
  absl::StatusOr<runtime::StateDict> Save(uint64_t seed);
  absl::StatusOr<runtime::LoadReport> Load(const runtime::StateDict& state,
                                           const runtime::LoadOptions& options,
                                           const GraphConfig& config);

  // Averages that have seen updates but have no value of their own, those of parameters that took
  // the place of others and those named in `anew`, begin at their parameter: only the first update
  // of all would set them. Callers hold the lock.
  absl::Status StartAverages(uint64_t seed, const std::set<std::string>& anew = {});

  // The single element of a state variable; `fallback` if there is none.
  double Scalar(const std::string& variable, double fallback) const;
  absl::Status SetScalar(const std::string& variable, double value);
  // Name of the first parameter with a non-finite gradient in the last training step; "" if none.
  std::string FirstNonFinite() const;

 private:
  // Slots that `state` has under another name of a tied parameter, under the one that it has here.
  absl::StatusOr<runtime::StateDict> WithOwnSlotNames(const runtime::StateDict& state) const;
  // Whether a step has updated the averages of an optimizer.
  bool HasAverages(const OptimizerEntry& entry) const;
  // Types of the state that only compiling makes, known before so that a load says at once what
  // does not fit, not the first step.
  std::map<std::string, ir::ValueType> StateMadeLater(const GraphConfig& config) const;
  // Takes the number of micro-batches that `state`, which was loaded, has; none if it has none.
  absl::Status ResumeWindow(const runtime::StateDict& state, const GraphConfig& config);
  // The parameters by the names of what their rounding keeps beside them (Weights::kBF16Kahan).
  std::map<std::string, std::string> Compensations() const;
  // State that is there for mixed precision's sake: with it or without it a graph is the same.
  bool IsPrecisionState(const std::string& variable) const;

  Declaration& declared_;
  RunCounts& counts_;
};

}  // namespace halftone::nn
