// Choosing how cuDNN carries out a graph: engines and their settings from its heuristics, those
// refused that break our promises, and of the rest the first or, with autotuning, the fastest.
//
// Refused:
//  1. NONDETERMINISTIC engines, unless the result need not be deterministic.
//  2. Engines that narrow their inputs (f32 as TF32 on tensor cores, unless that is exact or
//     allowed; or to 16 bit) or sum in less than f32.
//  3. Winograd and FFT for 16-bit operands: they transform in the operands' type.
//  4. Plans whose workspace is over kCudnnWorkspaceLimit.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "halftone/kernels/cuda/cudnn/graph.h"

namespace halftone::cuda {

inline constexpr int64_t kCudnnWorkspaceLimit = int64_t{256} << 20;
// Settings of one engine beside one another: heuristics name up to dozens.
inline constexpr size_t kCudnnPlansOfAnEngine = 4;

// Points 1 to 3: OK, or Unimplemented with the reason.
absl::Status CheckNumericalNotes(const std::vector<cudnnBackendNumericalNote_t>& notes,
                                 const CudnnPromises& promises);

// An engine and its settings (knobs): enough to build the plan again.
struct CudnnChoice {
  int64_t engine = 0;
  std::vector<std::pair<int64_t, int64_t>> knobs;  // cudnnBackendKnobType_t, value

  // "12 3=1 14=2"; and back. InvalidArgument for other text, which may come from a file.
  std::string ToString() const;
  static absl::StatusOr<CudnnChoice> Parse(const std::string& text);
  friend bool operator==(const CudnnChoice&, const CudnnChoice&) = default;
};

// A graph ready to run.
struct CudnnPlan {
  std::shared_ptr<const CudnnGraph> graph;  // what `plan` refers to
  CudnnDescriptor config;
  CudnnDescriptor plan;
  CudnnChoice choice;
  int64_t workspace_bytes = 0;
};

// Plans that are not refused, in the order of the heuristics (mode A, then fallback); at most
// `limit`, and kCudnnPlansOfAnEngine of an engine. Unimplemented, with the reasons of the first
// refusals, if there is none.
absl::StatusOr<std::vector<CudnnPlan>> FindCudnnPlans(
    const std::shared_ptr<const CudnnGraph>& graph, const CudnnTarget& target, size_t limit);

// Like FindCudnnPlans, but asks every engine there is for its default settings: for what engines do
// though no heuristic names them.
absl::StatusOr<std::vector<CudnnPlan>> TryCudnnEngines(
    const std::shared_ptr<const CudnnGraph>& graph, const CudnnTarget& target, size_t limit);

// The plan of a choice that was made before, checked like those of the heuristics.
absl::StatusOr<CudnnPlan> RebuildCudnnPlan(const std::shared_ptr<const CudnnGraph>& graph,
                                           const CudnnTarget& target, const CudnnChoice& choice);

// RebuildCudnnPlan in two steps: a configuration that the engine says it can have, at once, and its plan, which may
// have to be compiled.
absl::StatusOr<CudnnDescriptor> ConfigureCudnnEngine(const CudnnGraph& graph,
                                                     const CudnnTarget& target,
                                                     const CudnnChoice& choice);
absl::StatusOr<CudnnPlan> BuildCudnnPlan(const std::shared_ptr<const CudnnGraph>& graph,
                                         const CudnnTarget& target, CudnnDescriptor config);

}  // namespace halftone::cuda
