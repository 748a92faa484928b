// Pass: one rewrite of a graph.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
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

// Where a pass of the program's own runs in the pipeline, see nn::StepConfig::add_pass.
enum class Stage : uint8_t {
  // The step as build() described it, tidied up: no casts of mixed precision and no gradients yet;
  // losses, optimizers and scalers are markers. All that follows is made of what the pass leaves.
  kForward,
  // The whole step: gradients and updates too, in the dtypes of mixed precision; no markers but
  // those of rematerialise. Ops that the device has no kernel for are decomposed afterwards.
  kStep,
};

// A pass of the program's own, and where it runs. Equal: the same object at the same stage.
struct OwnPass {
  Stage stage = Stage::kForward;
  std::shared_ptr<Pass> pass;
  friend bool operator==(const OwnPass&, const OwnPass&) = default;
};

}  // namespace halftone::passes
