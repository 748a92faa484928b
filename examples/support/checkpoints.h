// Saving a training run now and then, and taking it up where it was saved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "halftone/graph/nn/graph.h"
#include "halftone/graph/runtime/checkpoint.h"

namespace halftone::example {

// Where a run stands in its data.
struct Cursor {
  int epoch = 0;
  int64_t image = 0;  // position in the epoch's order of the next image to train on
};

class Checkpoints {
 public:
  // `path` "": never saves. `every`: steps from one save to the next; 0: only when asked. `run`
  // tells this run from others ("seed 1, batch 64"); it is saved too.
  Checkpoints(std::string path, int64_t every, std::string run)
      : path_(std::move(path)), every_(every), run_(std::move(run)) {}

  // Where to start. With `resume`: the last complete checkpoint goes into `graph`; without any the
  // run starts at the beginning. Says on standard error what it did. From here on no other run can
  // use the same path. In a job of several ranks all call it, and the errors are those of all. Errors: AlreadyExists (not `resume`, and a checkpoint would be overwritten);
  // FailedPrecondition (another run uses the path now); of ReadLatestCheckpoint and
  // load_state_dict; InvalidArgument (the checkpoint is of another run).
  absl::StatusOr<Cursor> Start(nn::Graph& graph, bool resume);
  // Whether AfterStep will save.
  bool IsDue() const { return !path_.empty() && every_ > 0 && (steps_ + 1) % every_ == 0; }
  // `next`: what follows.
  absl::Status AfterStep(nn::Graph& graph, const Cursor& next);
  absl::Status Save(nn::Graph& graph, const Cursor& next);
  // The error that ends the run, with what it leaves: "...; saved up to epoch 2, image 640: go on
  // with --resume", or that all steps are lost. OK stays OK.
  absl::Status WithWhatIsSaved(const absl::Status& status) const;

 private:
  absl::Status CheckNew() const;
  absl::StatusOr<Cursor> StartAlone(nn::Graph& graph, bool resume);
  absl::StatusOr<Cursor> Resume(nn::Graph& graph);
  std::string path_;
  int64_t every_, steps_ = 0;
  std::optional<Cursor> saved_;  // where the checkpoint stands
  std::string run_;
  runtime::CheckpointLock lock_;
};

}  // namespace halftone::example
