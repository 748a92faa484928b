// Progress of a training run: a bar that redraws itself on a terminal that can do that and is wide
// enough, plain lines elsewhere. Everything goes to standard error, so that standard output
// holds results only.
#pragma once

#include <chrono>
#include <cstdint>

namespace halftone::example {

class Progress {
 public:
  Progress(int epochs, int64_t steps_per_epoch);
  // After a training step over `images` images.
  void Step(int epoch, int64_t images, double loss);
  void ScaleChanged(double from, double to);
  void EpochDone(int epoch, double accuracy);

  int64_t steps() const { return steps_; }
  // Over the training steps after the first, which compiles; evaluation is not counted.
  double images_per_second() const;

 private:
  using Clock = std::chrono::steady_clock;
  void ClearBar();
  int epochs_;
  int64_t steps_per_epoch_;
  const bool quiet_;  // ranks of a job beside the first
  bool redraws_;
  bool bar_shown_ = false;
  int64_t steps_ = 0, timed_images_ = 0;
  double timed_seconds_ = 0, loss_sum_ = 0;
  int64_t epoch_step_ = 0;
  Clock::time_point last_;
};

// Largest resident size of the process so far, in MiB.
double PeakRssMib();

}  // namespace halftone::example
