// PythonGraph: an nn::Graph whose build() is a method of a Python subclass.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "halftone/graph/nn/graph.h"
#include "halftone/graph/runtime/graph_file.h"
#include "halftone/python_stub/arrays.h"

namespace halftone::python {

// What build() returned, so that a call returns the same with arrays in place of values.
struct OutputForm {
  enum class Kind : uint8_t { kNone, kSingle, kTuple, kList, kDict };
  Kind kind = Kind::kNone;
  std::vector<std::string> keys;  // of a dict
  size_t size = 0;                // how many values
};

class PythonGraph;

// A graph's lock for bindings: a thread that has to wait for it gives the interpreter lock up.
class GraphLock {
 public:
  // Raises RuntimeError where fork() left its holder behind.
  explicit GraphLock(const PythonGraph& graph);

 private:
  py::object waited_for_;  // others may have dropped the graph meanwhile
  std::unique_ptr<runtime::StateLock> lock_;
};

class PythonGraph : public nn::Graph {
 public:
  explicit PythonGraph(const std::string& name) : nn::Graph(name) {}

  // For the bindings; subclasses of nn::Graph call them in constructors.
  using nn::Graph::add_module;
  using nn::Graph::add_optimizer;
  using nn::Graph::add_parameter;
  using nn::Graph::add_plateau;
  using nn::Graph::add_scaler;
  using nn::Graph::named_parameters;
  using nn::Graph::parameters;
  using nn::Graph::set_grad_scaler;
  using nn::Graph::TakeStatus;

  // Calls the Python method. Never throws: see tracing.h.
  nn::Values build(const nn::Values& in) override;

  // One step, without the interpreter lock but for build(). Calls of one graph by several threads
  // wait for each other. Errors: those of the C++ graph; TypeError and ValueError of ToTensor;
  // whatever build() raises.
  py::object Call(const py::args& inputs);
  void Compile(const py::args& inputs);
  // Calls `f` with the inputs, for which the graph is compiled, without the interpreter lock but for
  // build(). Errors: those of Call, and of `f`.
  void WithInputs(const py::args& inputs,
                  absl::FunctionRef<absl::Status(absl::Span<const Tensor>)> f);
  void ExportOnnx(const std::string& path, const py::args& inputs);
  std::unique_ptr<runtime::GraphFile> InferenceModel(const py::args& inputs);

  // The modules that were added; they live as long as the graph does.
  std::vector<nn::Module*>& adopted() { return adopted_; }

  // Handles on optimizers and scalers are valid while this is not expired. They hold no reference:
  // a graph usually keeps its handles as attributes, and such a circle would never be collected.
  std::weak_ptr<void> alive() const { return alive_; }

 private:
  // Compiles for evaluation with such inputs, then does `then`, without the interpreter lock.
  absl::Status ForEvaluation(const py::args& inputs, absl::FunctionRef<absl::Status()> then);
  // Copies them.
  void TakeInputs(const py::args& inputs);
  // What the step that fits gives; compiled if it is new, without the interpreter lock.
  absl::StatusOr<const OutputForm*> CompileForInputs();

  // While a call has the graph's lock they are its own.
  bool calling_ = false;
  std::vector<Tensor> inputs_;  // memory of the last call's, for the next
  // By the executable that gives it. One that was dropped leaves its form behind, until another
  // is made in its place.
  std::map<const ir::Graph*, OutputForm> forms_;
  OutputForm traced_form_;
  bool traced_ = false;  // build() ran since it was last cleared
  std::vector<nn::Module*> adopted_;
  std::shared_ptr<void> alive_ = std::make_shared<char>();
};

}  // namespace halftone::python
