// GraphFile: a step read from a file (text or protobuf form), compiled and run by name.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "halftone/core/device.h"
#include "halftone/graph/runtime/compile.h"

namespace halftone::python {

using Feeds = std::map<std::string, Tensor>;

// Thread-safe: calls of Run, Save and Load wait for each other.
class GraphFile {
 public:
  // Compiles; initial values follow `seed`. Errors: those of Compile.
  static absl::StatusOr<std::unique_ptr<GraphFile>> Create(std::unique_ptr<ir::Graph> graph,
                                                           const Device& device, uint64_t seed);

  // In the order of the file. An output without a name is called after its node.
  const std::vector<std::string>& inputs() const { return input_names_; }
  const std::vector<std::string>& outputs() const { return output_names_; }

  // One step. Errors: InvalidArgument (a feed missing, unexpected or of another type), those of
  // Executable::Run.
  absl::StatusOr<Feeds> Run(const Feeds& feeds);

  absl::StatusOr<runtime::StateDict> Save() const;
  absl::StatusOr<runtime::LoadReport> Load(const runtime::StateDict& state, bool strict);

  const std::string& text() const { return text_; }  // as read
  const runtime::Executable& executable() const { return *executable_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  GraphFile() = default;
  std::string name_, text_;
  std::vector<std::string> input_names_, output_names_, notes_;
  runtime::VariableStore store_;
  std::unique_ptr<runtime::Executable> executable_;
  uint64_t run_count_ = 0;
};

}  // namespace halftone::python
