// Tracer: makes the graph of one step from what build() does and what the graph declared: scalers,
// optimizers, mixed precision. Changes neither of them.
#pragma once

#include <memory>
#include <optional>

#include "absl/types/span.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/nn/config.h"
#include "halftone/graph/nn/declaration.h"
#include "halftone/graph/nn/graph_notes.h"
#include "halftone/graph/nn/trace.h"
#include "halftone/graph/nn/value.h"

namespace halftone::nn {

// Whether the step of an optimizer gives its gradient norm.
bool GivesGradNorm(const Declaration& declared, const StepConfig& config,
                   const OptimizerEntry& entry);

// Example:
//   Tracer tracer(declared, config, training, low, notes);
//   const Values outputs = graph.build(tracer.Inputs(types));
//   HT_ASSIGN_OR_RETURN(auto traced, tracer.Finish(outputs));
class Tracer {
 public:
  // Until destroyed it is the trace of this thread. All but `low` must outlive it.
  // `low`: the low dtype to compile for; nullopt: none, f32 throughout.
  Tracer(const Declaration& declared, const StepConfig& config, bool training,
         std::optional<DType> low, GraphNotes& notes);

  // What build() gets.
  Values Inputs(absl::Span<const ir::ValueType> in);
  // The first error of build().
  const absl::Status& status() { return trace_.builder().status(); }
  // The whole step, to be called once. Its first outputs are `outputs`, the others those of
  // optimizers: of each its gradient norm, if it gives one, and whether it was applied.
  // Errors: the first of build(), then what does not fit in the declaration or the configuration.
  absl::StatusOr<std::unique_ptr<ir::Graph>> Finish(const Values& outputs);

 private:
  void EmitScalers();
  void EmitOptimizers();
  void EmitAccumulation();
  void EmitDataParallel();
  // Errors: clip_grad_norm that is no norm, or beside clip_norm; an unknown scaler.
  absl::Status CheckOptimizer(const OptimizerEntry& entry) const;
  // Makes parameters that build() does not use known to the graph, and says so in a note.
  void DeclareUnused(const OptimizerEntry& entry);

  const Declaration& declared_;
  const StepConfig& config_;
  const bool training_;
  const std::optional<DType> low_;
  GraphNotes& notes_;
  std::unique_ptr<ir::Graph> traced_;
  internal::Trace trace_;
};

}  // namespace halftone::nn
