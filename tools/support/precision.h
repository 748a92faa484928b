// One step in several precisions, each from the same state and inputs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "halftone/passes/amp/range_report.h"
#include "halftone/tools/support/step.h"

namespace halftone::tools {

// `traced` with mixed precision in `low`, f16 or bf16 (by its own policy, or the default one), and
// `f32_paths` denied; for f32, without mixed precision. Error: InvalidArgument if precision is decided
// already.
absl::StatusOr<std::unique_ptr<ir::Graph>> InPrecision(
    const ir::Graph& traced, DType low, const std::vector<std::string>& f32_paths = {});

// A step as a tool was told of it.
struct StepSource {
  const ir::Graph& traced;
  Device device;
  uint64_t seed;
  const std::vector<Tensor>& feeds;
  int steps;                            // what is looked at is of the last
  std::vector<std::string> fetch = {};  // compared by FindCulpritNodes; none: all outputs
  // Gives the variables of a lowered graph their values; the count of the next step.
  std::function<absl::StatusOr<uint64_t>(const ir::Graph& lowered, runtime::VariableStore&)> load;
};

// How a value that both runs have differs.
struct PrecisionDifference {
  std::string value, op;
  std::string left_type, right_type;
  double error = 0;  // RelativeError of right beside left
};

// In the order of the step. Values are the same by name, op and shape; those of one side alone (casts)
// are left out. Errors: those of lowering and running.
absl::StatusOr<std::vector<PrecisionDifference>> ComparePrecisions(const StepSource& source,
                                                                   DType left, DType right);
// The first in the order of the step that is over the tolerance; null if there is none.
const PrecisionDifference* FirstOver(const std::vector<PrecisionDifference>& differences,
                                     double tolerance);
// The worst first, at most `limit`; a last line says what is over the tolerance.
std::string ToTable(const std::vector<PrecisionDifference>& differences, double tolerance,
                    size_t limit);

// The ranges of all values of f32 steps, `source.steps` of them; of inputs and variables where f16
// cannot hold them. Errors: as above.
absl::StatusOr<amp::RangeReport> MeasureRanges(const StepSource& source);
// The policy of the graph in f16, with what leaves its range denied too.
amp::Policy ProposedPolicy(const amp::RangeReport& report, const ir::Graph& traced);
// At most `limit` rows, then that policy, if it denies anything more.
std::string ToTable(const amp::RangeReport& report, const ir::Graph& traced, size_t limit);

// The fewest nodes to keep f32 so that the outputs in mixed precision are within `tolerance` of those in
// f32, as RelativeError has it. For f16 those are tried first that leave its range in f32
// (amp::RangeReport), and the others where these do not explain it.
struct Culprits {
  std::vector<std::string> paths;
  amp::Policy policy;     // of the graph, with these denied
  size_t candidates = 0;  // nodes in 16 bit
  size_t suspects = 0;    // of them, by their ranges
  int runs = 0;
};
// Errors: as above.
absl::StatusOr<Culprits> FindCulpritNodes(const StepSource& source, DType low, double tolerance);
std::string ToText(const Culprits& culprits, double tolerance);

}  // namespace halftone::tools
