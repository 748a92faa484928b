#include "halftone/graph/runtime/graph_file.h"

#include <algorithm>
#include <map>
#include <utility>

#include "halftone/graph/ir/text.h"
#include "halftone/graph/runtime/compile.h"

namespace halftone::runtime {
namespace {

// Names under which results are given. Errors: InvalidArgument where two values have one.
absl::StatusOr<std::vector<std::string>> OutputNames(const ir::Graph& graph) {
  std::vector<std::string> names;
  std::map<std::string, ir::Value> values;
  for (const ir::Output& output : graph.outputs()) {
    names.push_back(ir::OutputName(output));
    if (values.emplace(names.back(), output.value).first->second == output.value) continue;
    return InvalidArgument("graph @", graph.name(), ": two outputs are called \"", names.back(),
                           "\"; expected different names");
  }
  return names;
}

}  // namespace

struct GraphFile::Impl {
  // The values given become those of the variables that the step has.
  absl::Status Assign(const std::map<std::string, Tensor>& values);
  // Addresses of the feeds, in the order of the inputs.
  absl::StatusOr<std::vector<const void*>> Addresses(const Feeds& feeds) const;

  std::unique_ptr<ir::Graph> graph;  // as read
  Device device;
  std::vector<std::string> input_names, output_names, notes;
  VariableStore store;
  std::unique_ptr<Executable> executable;
  uint64_t run_count = 0;
};

absl::Status GraphFile::Impl::Assign(const std::map<std::string, Tensor>& values) {
  for (const auto& [name, value] : values) {
    const ir::Variable* variable = graph->FindVariable(name);
    if (variable == nullptr) {
      return InvalidArgument("graph @", graph->name(), " has no variable \"", name, "\"");
    }
    HT_RETURN_IF_ERROR(store.Declare(*variable, value).status());
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<const void*>> GraphFile::Impl::Addresses(const Feeds& feeds) const {
  std::vector<const void*> in;
  for (size_t i = 0; i < input_names.size(); ++i) {
    const std::string& name = input_names[i];
    const ir::ValueType& type = executable->input_types()[i];
    const auto feed = feeds.find(name);
    if (feed == feeds.end()) {
      return InvalidArgument("graph @", graph->name(), ": input \"", name,
                             "\" is missing; expected ", type.ToString());
    }
    const Tensor& value = feed->second;
    if (value.dtype() != type.dtype || value.shape() != type.shape) {
      return InvalidArgument("graph @", graph->name(), ": input \"", name, "\": got ",
                             value.TypeString(), ", expected ", type.ToString());
    }
    in.push_back(value.raw());
  }
  for (const auto& feed : feeds) {
    if (std::find(input_names.begin(), input_names.end(), feed.first) != input_names.end()) {
      continue;
    }
    return InvalidArgument("graph @", graph->name(), " has no input \"", feed.first, "\"");
  }
  return in;
}

GraphFile::GraphFile(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GraphFile::~GraphFile() = default;

absl::StatusOr<std::unique_ptr<GraphFile>> GraphFile::Create(ir::Model model, const Device& device,
                                                             uint64_t seed) {
  auto impl = std::make_unique<Impl>();
  impl->graph = std::move(model.graph);
  impl->device = device;
  impl->notes = std::move(model.notes);
  for (const ir::Node* input : impl->graph->inputs()) impl->input_names.push_back(input->name());
  HT_ASSIGN_OR_RETURN(impl->output_names, OutputNames(*impl->graph));
  HT_RETURN_IF_ERROR(impl->Assign(model.variables));
  CompileOptions options;
  options.device = device;
  options.seed = seed;
  options.notes = &impl->notes;
  HT_ASSIGN_OR_RETURN(impl->executable, Compile(impl->graph->Clone(), options, impl->store,
                                                std::make_shared<Arena>()));
  HT_RETURN_IF_ERROR(impl->store.MaterialiseAll(seed));
  return std::unique_ptr<GraphFile>(new GraphFile(std::move(impl)));
}

absl::StatusOr<Feeds> GraphFile::Run(const Feeds& feeds) {
  const StateLock lock(impl_->store.guards());
  HT_RETURN_IF_ERROR(lock.status());
  HT_ASSIGN_OR_RETURN(const std::vector<const void*> in, impl_->Addresses(feeds));
  std::vector<Tensor> results;
  std::vector<void*> out;
  for (const ir::ValueType& type : impl_->executable->output_types()) {
    HT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type.dtype, type.shape));
    out.push_back(tensor.raw());
    results.push_back(std::move(tensor));
  }
  HT_RETURN_IF_ERROR(impl_->executable->Run(in.data(), out.data(), impl_->run_count++));
  Feeds named;
  for (size_t i = 0; i < results.size(); ++i) named[impl_->output_names[i]] = results[i];
  return named;
}

absl::StatusOr<StateDict> GraphFile::Save() const {
  const StateLock lock(impl_->store.guards());
  HT_RETURN_IF_ERROR(lock.status());
  return impl_->store.Save();
}

absl::StatusOr<LoadReport> GraphFile::Load(const StateDict& state, bool strict) {
  const StateLock lock(impl_->store.guards());
  HT_RETURN_IF_ERROR(lock.status());
  return impl_->store.Load(state, {.strict = strict});
}

absl::StatusOr<ir::Model> GraphFile::model() const {
  ir::Model model;
  HT_ASSIGN_OR_RETURN(model.variables, Save());
  std::erase_if(model.variables, [this](const auto& value) {
    return impl_->graph->FindVariable(value.first) == nullptr;
  });
  model.graph = impl_->graph->Clone();
  return model;
}

const std::vector<std::string>& GraphFile::inputs() const { return impl_->input_names; }
const std::vector<std::string>& GraphFile::outputs() const { return impl_->output_names; }
const ir::Graph& GraphFile::graph() const { return *impl_->graph; }
const Executable& GraphFile::executable() const { return *impl_->executable; }
const Device& GraphFile::device() const { return impl_->device; }
const std::vector<std::string>& GraphFile::notes() const { return impl_->notes; }

}  // namespace halftone::runtime
