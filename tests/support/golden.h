// Golden tests of passes: one file holds a graph, a separator, and the graph the pass makes of it.
//
//   // What the case shows.
//   // target: cuda-sm90
//   graph @g(%x: f32[4]) {
//     ...
//   }
//   // expected
//   graph @g(%x: f32[4]) {
//     ...
//   }
//
// The folder names the pass. A file named *_does_not_fire.txt has no second part: the pass must
// leave the graph alone. `// expected error CODE: text` takes the place of the second part where
// the pass must refuse. Lines `// key: value` above the graph are options:
//   target     one of the fixed targets; cpu-avx512bf16 if absent
//   cannot_run ops, blank-separated, that the target has no kernel for
//   tolerance  relative, for the results before and after; absent: equal bits
//   range      lo..hi of random float feeds (-2..2); ints: lo..hi of integer feeds (0..1)
//   print      any of scopes locations provenance amp, blank-separated
// UPDATE_GOLDEN=1 in the environment rewrites second parts; read the diff.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "halftone/graph/ir/text.h"
#include "halftone/tests/support/graph_runner.h"

namespace halftone::testing {

struct GoldenCase {
  std::string path;
  std::string pass;   // "simplify"
  std::string name;   // "add_zero_does_not_fire"
  std::string input;  // up to the separator, comments included
  bool fires = true;
  std::string expected;        // text of the graph; empty if !fires or an error
  std::string expected_error;  // "CODE: text"; empty: none
  std::map<std::string, std::string> options;

  std::string option(const std::string& key, const std::string& otherwise) const;
};

// Errors: NotFound, InvalidArgument (no separator, an unknown option).
absl::StatusOr<GoldenCase> ReadGolden(const std::string& path);
// Every tests/passes/golden/<pass>/*.txt under the root of the source tree, sorted.
std::vector<std::string> GoldenFiles(const std::string& source_root);

// The parts of a case, ready for use; they fail on malformed options.
absl::StatusOr<FeedRange> FeedRangeOf(const GoldenCase& golden);
ir::TextOptions TextOptionsOf(const GoldenCase& golden);

// Runs the pass and fails the running test unless text, answer and results are as the file says.
void CheckGolden(const GoldenCase& golden);

}  // namespace halftone::testing
