// RunLog: how a training goes, for TensorBoard and `halftone_dump --run`.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>

#include "absl/types/span.h"
#include "halftone/core/status.h"
#include "halftone/core/tensor.h"

namespace halftone::nn {

class Graph;

struct RunLogOptions {
  // Training steps from one entry to the next, 1 or more. An entry reads results of the step: on an
  // accelerator it waits for them, while the steps in between cost nothing.
  int64_t every = 1;
  // What add_step counts; it is part of a name: "speed/images_per_second".
  std::string items = "images";
};

// Writes numbers of the training steps of one graph as TensorBoard event files into a folder. Where
// files are there already, TensorBoard goes on from them: what they have of the first logged step
// and of later ones is void (of later ones alone, where add_scalar comes first), so that a run that
// resumes at a checkpoint continues its curves, and one that starts again replaces them.
//
// Of each logged step, beside what the program gives:
//   optimizer0/learning_rate   what the step used; further groups: optimizer0/learning_rate_1, ...
//   optimizer0/grad_norm       where it is known, see OptimizerHandle::grad_norm
//   scaler0/scale              after the step
//   scaler0/skipped_steps      so far
//   speed/images_per_second    since the entry before
//
// A log never ends a training: where the folder or the disk refuses, status() says so, a note goes
// to standard error (unless the environment has HALFTONE_NOTES=0), and nothing is written from then
// on. A killed program loses the entries of its last second. One thread at a time.
//
// Example:
//   nn::RunLog log(model, "runs/first");
//   for (const auto& batch : data) {
//     HT_ASSIGN_OR_RETURN(auto out, model(batch));
//     log.add_step({{"train/loss", out[0]}}, batch_size);
//   }
class RunLog {
 public:
  // A number under a name, which TensorBoard groups by what stands before its '/'. A tensor has one
  // element; it is read for the steps that are logged, and multiplied by `factor`.
  struct Number {
    Number(std::string_view name, double number) : tag(name), value(number) {}
    Number(std::string_view name, const Tensor& number, double times = 1)
        : tag(name), tensor(&number), factor(times) {}

    std::string_view tag;
    double value = 0;
    const Tensor* tensor = nullptr;
    double factor = 1;
  };

  // Writes nothing.
  RunLog();
  // `folder` is made where it is not there; "" writes nothing. `graph` must outlive the log.
  RunLog(const Graph& graph, const std::string& folder, const RunLogOptions& options = {});
  RunLog(RunLog&&) noexcept;
  RunLog& operator=(RunLog&&) noexcept;
  ~RunLog();

  // After a training step over `items` items. Allocates nothing once it has seen a step.
  void add_step(absl::Span<const Number> numbers, int64_t items = 0);
  void add_step(std::initializer_list<Number> numbers, int64_t items = 0) {
    add_step(absl::Span<const Number>(numbers.begin(), numbers.size()), items);
  }
  // Beside the steps: the accuracy after an epoch. Belongs to the last training step.
  void add_scalar(std::string_view tag, double value);
  // The time since the last step is no part of the speed: after an evaluation, or a checkpoint.
  void skip_time();
  // Gives the system what was added, which happens by itself once a second while steps are logged.
  // Before a checkpoint, so that a run that is killed behind it goes on without a hole.
  void flush();

  // The first thing that went wrong. FailedPrecondition or InvalidArgument with the path of the
  // file: nothing is written any more. InvalidArgument with a tag: that number was left out.
  const absl::Status& status() const;
  // Of the file; "" if there is none.
  std::string path() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace halftone::nn
