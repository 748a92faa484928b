// Replay: a compiled step run once more to look at its values. Nothing of it is kept: it writes no
// variable, and has working memory of its own.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/types/span.h"
#include "halftone/core/device.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/runtime/variable_store.h"
#include "halftone/passes/amp/range.h"

namespace halftone::runtime {

struct ReplayOptions {
  Device device;
  uint64_t seed = 0;       // of variables that have no value yet
  uint64_t run_count = 0;  // which random masks follow
  // Variables of one element that are to have another value than they have now.
  std::map<std::string, double> scalars = {};
};

// Of every float value, by node id and output.
using SeenRanges = std::map<std::pair<int64_t, int>, amp::Range>;

// Runs `lowered`, a graph after Lower, kernel by kernel with the present values of `store`, and
// looks at what each kernel wrote before the next one runs. Kernels and operands are those of an
// ordinary run, so equal variables, inputs and run count give equal bits. `inputs`: data of the
// graph's inputs in plain layout, in order. Errors: those of Executable::Create and Executable::Run.
absl::StatusOr<SeenRanges> Replay(const ir::Graph& lowered, const ReplayOptions& options,
                                  VariableStore& store, absl::Span<const void* const> inputs);

}  // namespace halftone::runtime
