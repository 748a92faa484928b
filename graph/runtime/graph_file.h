// GraphFile: a step or a model read from a file, compiled and run by name.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "halftone/core/device.h"
#include "halftone/graph/ir/model.h"
#include "halftone/graph/runtime/load_options.h"

namespace halftone::runtime {

class Executable;

using Feeds = std::map<std::string, Tensor>;

// Thread-safe: calls of Run, Save and Load wait for each other.
//
// Example: file = GraphFile::Create(*nn::ReadModel("net.onnx"), Device::Cpu());
//          out = (*file)->Run({{"x", x}});
class GraphFile {
 public:
  // Compiles. Variables have the values of the model; those that it lacks, initial ones by `seed`.
  // Errors: those of Compile; InvalidArgument (a value of another type, or of no variable; two
  // outputs of one name).
  static absl::StatusOr<std::unique_ptr<GraphFile>> Create(ir::Model model, const Device& device,
                                                           uint64_t seed = 0);
  ~GraphFile();
  GraphFile(const GraphFile&) = delete;
  GraphFile& operator=(const GraphFile&) = delete;

  // In the order of the file. An output without a name is called after its node.
  const std::vector<std::string>& inputs() const;
  const std::vector<std::string>& outputs() const;

  // One step. Errors: InvalidArgument (a feed missing, unexpected or of another type), those of
  // Executable::Run.
  absl::StatusOr<Feeds> Run(const Feeds& feeds);

  absl::StatusOr<StateDict> Save() const;
  absl::StatusOr<LoadReport> Load(const StateDict& state, bool strict);
  // The graph as it was read, with copies of the values that its variables have now.
  absl::StatusOr<ir::Model> model() const;

  // As read, and as compiled.
  const ir::Graph& graph() const;
  const Executable& executable() const;
  const Device& device() const;
  // What the model, and its compilation, had to say.
  const std::vector<std::string>& notes() const;

 private:
  struct Impl;
  explicit GraphFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace halftone::runtime
