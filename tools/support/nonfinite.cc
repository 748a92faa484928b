#include "halftone/tools/support/nonfinite.h"

#include <optional>

#include "halftone/graph/runtime/find_nonfinite.h"
#include "halftone/graph/runtime/replay.h"

namespace halftone::tools {

absl::StatusOr<NonFiniteStep> FindNonFiniteStep(const ir::Graph& lowered, const Device& device,
                                                uint64_t seed, runtime::VariableStore& store,
                                                const std::vector<Tensor>& feeds, int steps,
                                                uint64_t* run_count) {
  std::vector<const void*> inputs;
  for (const Tensor& feed : feeds) inputs.push_back(feed.raw());
  std::optional<Step> running;
  for (int i = 0; i < steps; ++i) {
    runtime::ReplayOptions options;
    options.device = device;
    options.seed = seed;
    options.run_count = *run_count;
    HT_ASSIGN_OR_RETURN(const runtime::SeenRanges ranges,
                        runtime::Replay(lowered, options, store, inputs));
    if (const auto found = runtime::FindNonFinite(lowered, ranges)) {
      return NonFiniteStep{i, runtime::ToString(*found)};
    }
    if (i + 1 == steps) break;
    if (!running) {
      HT_ASSIGN_OR_RETURN(running, Step::Create(lowered.Clone(), device, seed, store));
    }
    HT_RETURN_IF_ERROR(running->Run(feeds, (*run_count)++).status());
  }
  return NonFiniteStep();
}

}  // namespace halftone::tools
