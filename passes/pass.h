// Pass: one rewrite of a graph.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/target.h"

namespace halftone::ir {
class Evaluator;
}

namespace halftone::passes {

class Progress;

struct PassContext {
  const ir::Target* target = nullptr;        // never null when run through the pass manager
  const ir::Evaluator* evaluator = nullptr;  // null: nothing is folded
  Progress* progress = nullptr;              // told of each pass; may be null
  std::map<std::string, int64_t>
      stats;                       // counters of the pass that runs now: "casts_inserted" -> 3
  int64_t folded_bytes = 0;        // by fold-constants; kept over all passes
  int64_t fold_read_bytes = 0;     // likewise
  std::vector<std::string> notes;  // for the user: range lint, dropped scaler; kept over all passes
  // Entries of the amp policy that are no op and match no node, with what to say of each. Another
  // mode of the graph may need them, which only its owner knows.
  std::map<std::string, std::string> unmatched_entries;
};

class Pass {
 public:
  virtual ~Pass() = default;
  // A verb phrase: "insert-amp-casts".
  virtual const char* name() const = 0;
  // Whether the graph changed. On an error the graph is in an unspecified but destructible state.
  virtual absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) = 0;
};

}  // namespace halftone::passes
