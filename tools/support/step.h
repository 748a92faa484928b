// A graph of a file made ready to run: lowered for a device, with the values that a tool asks for
// as its outputs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "halftone/core/device.h"
#include "halftone/graph/runtime/executable.h"

namespace halftone::tools {

// What `name` means in a graph: an output of that name; else a value by its node, "h" or "h#1";
// else the value of a variable at the start of the step. "%h" is only the second. Invalid if there
// is none.
ir::Value FindValue(const ir::Graph& graph, const std::string& name);

// A lowered graph whose outputs are the values that a tool asks for.
struct FetchedGraph {
  std::unique_ptr<ir::Graph> lowered;
  std::vector<std::string> names;  // of the outputs
  std::vector<std::string> notes;  // of the passes, for the user
};

// `graph` after runtime::Lower for `device`, with what `names` mean as its outputs; none: those of
// `graph`. Where `dump_dir` is not empty it gets the text after each pass. Values that lowering
// keeps are those of the step as it runs on the device, with the dtype that mixed precision gave
// them; one that it does away with is kept by being an output of `graph`, from which other
// decisions may follow: `notes` says so. Without `fuse` every op is a node of its own, with the same
// bits. Errors: those of the passes; OptionError for a name that is none.
absl::StatusOr<FetchedGraph> LowerForFetches(const ir::Graph& graph,
                                             const std::vector<std::string>& names,
                                             const Device& device, const std::string& dump_dir,
                                             bool fuse);

// The tensor that holds, in plain layout, what `tensor` holds in the layout of `type`.
Tensor ToPlain(const Tensor& tensor, const ir::ValueType& type);

// Runs a lowered graph.
class Step {
 public:
  // Variables get their values from `store`, which must outlive the step. Errors: those of
  // runtime::Executable::Create.
  static absl::StatusOr<Step> Create(std::unique_ptr<ir::Graph> lowered, const Device& device,
                                     uint64_t seed, runtime::VariableStore& store);

  // One step: the graph's outputs, in order, in plain layout. Variables move on. Errors: OutOfRange
  // (a label or id), ResourceExhausted.
  absl::StatusOr<std::vector<Tensor>> Run(const std::vector<Tensor>& feeds, uint64_t run_count);

  runtime::Executable& executable() { return *executable_; }

 private:
  std::unique_ptr<runtime::Executable> executable_;
};

}  // namespace halftone::tools
