// Settings (knobs) of an engine that no heuristic names. An f32 weight gradient of 16-bit operands has
// one engine, of which the library gives the default alone: each sum in one part, however few blocks
// that makes. The engine has up to 128 parts and 43 kernels, and compiles each plan for a second or
// two. So few are built, near what was fastest: one knob after another, those that count (from 1 on:
// parts of sums) before those that name (from 0 on: kernels), and of each a few values at a time,
//   * that count: 4, 16 and 64 times the least, then twice and half of the fastest;
//   * that name: spread over the range, then between, as long as one of them is the fastest.
// Values that the engine refuses before it compiles cost nothing and are passed over.
#pragma once

#include <chrono>
#include <memory>
#include <vector>

#include "halftone/kernels/cuda/cudnn/plan.h"

namespace halftone::cuda {

// Of an engine: `minimum` to `maximum` in steps of `stride`. It may refuse some of these values for a
// graph.
struct CudnnKnob {
  cudnnBackendKnobType_t type = CUDNN_KNOB_TYPE_COUNTS;
  int64_t minimum = 0, maximum = 0, stride = 1;
};
absl::StatusOr<std::vector<CudnnKnob>> CudnnKnobs(const CudnnPlan& plan);

class CudnnKnobSearch {
 public:
  // From `start` on, by at most `budget` plans for `target`, none of which is begun later than in
  // `seconds`. Of the knobs those that only cut the same
  // sums otherwise; how parts are added up (CUDNN_KNOB_TYPE_REDUCTION_MODE and others) stays as it is.
  CudnnKnobSearch(const CudnnPlan& start, const CudnnTarget& target, size_t budget, double seconds);

  // Plans to be compared with that of `best`, the fastest so far; none when the search is over. Uses
  // the target's handle.
  std::vector<CudnnPlan> Next(const CudnnChoice& best);

 private:
  // Appends the plan of `best` with another value of the knob, if that can be had.
  void Build(const CudnnChoice& best, const CudnnKnob& knob, int64_t value,
             std::vector<CudnnPlan>& plans);
  std::vector<CudnnPlan> NextCounts(const CudnnChoice& best, const CudnnKnob& knob);
  std::vector<CudnnPlan> NextNames(const CudnnChoice& best, const CudnnKnob& knob, bool better);

  std::shared_ptr<const CudnnGraph> graph_;
  CudnnTarget target_;
  size_t budget_;
  std::chrono::steady_clock::time_point deadline_;
  std::vector<CudnnKnob> knobs_;
  size_t knob_ = 0;   // the one that is tried
  int round_ = 0;     // how often it was
  size_t names_ = 0;  // how many of its values were, in their order
  CudnnChoice last_best_;
};

}  // namespace halftone::cuda
