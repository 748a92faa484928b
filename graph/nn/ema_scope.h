// EmaScope: averaged parameters for an evaluation.
#pragma once

#include "halftone/core/status.h"

namespace halftone::nn {

class Graph;

// While one lives, the parameters of a graph have the values of their averages (optim::Ema), and
// the averages theirs; all graphs that share the parameters see that. Parameters without an
// average, and those of which no update was averaged yet, keep their values, as buffers do. A
// training step, loading and saving a checkpoint are FailedPrecondition meanwhile; state_dict()
// gives the averages under the names of the parameters. Nothing is compiled.
//
// Errors (status): FailedPrecondition: another scope of this graph lives; inside build(). Those of
// the device that fetching values meets. Nothing has changed then.
//
// Example:
//   {
//     const nn::EmaScope averaged(model);
//     model.eval();
//     out = model({x});
//   }
//   model.train();
class EmaScope {
 public:
  explicit EmaScope(Graph& graph);
  ~EmaScope();
  EmaScope(const EmaScope&) = delete;
  EmaScope& operator=(const EmaScope&) = delete;

  const absl::Status& status() const { return status_; }

 private:
  Graph& graph_;
  absl::Status status_;
};

}  // namespace halftone::nn
