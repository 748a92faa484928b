// Runs the precision passes over graph text and looks at what they decided.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/passes/pass.h"

namespace halftone::testing {

struct AmpRun {
  std::unique_ptr<ir::Graph> graph;
  passes::PassContext context;
  absl::Status status;

  const ir::Node& node(const std::string& name) const;
  // "bf16", "f32" of the decision about a node; "undecided".
  std::string dtype(const std::string& name) const;
  const std::string& reason(const std::string& name) const { return node(name).amp.reason; }
  // "%x -> bf16" for each cast of the passes, sorted.
  std::vector<std::string> casts() const;
};

// The graph of `text`; ends the test program on a parse error.
std::unique_ptr<ir::Graph> ParseGraph(const std::string& text);
// A graph over `body` whose header declares %x and %y: f32[4,4], %ids: i64[4], and the variables
// %w and %v: f32[4,4], and which asks for AMP with the attributes `amp`: "dtype=bf16,
// deny=[\"add\"]".
std::string AmpText(const std::string& amp, const std::string& body);

// insert-amp-casts, then verify-amp-dtypes, on a fixed target. Errors end up in status.
AmpRun RunAmp(std::unique_ptr<ir::Graph> graph, const std::string& target = "cpu-avx512bf16");
AmpRun RunAmp(const std::string& text, const std::string& target = "cpu-avx512bf16");

// Runs one pass on the graph; the answer "changed".
absl::StatusOr<bool> RunPass(passes::Pass& pass, AmpRun* run,
                             const std::string& target = "cpu-avx512bf16");

// A copy whose nodes stand in another topological order.
std::unique_ptr<ir::Graph> ShuffleNodes(const ir::Graph& graph, uint64_t seed);

}  // namespace halftone::testing
