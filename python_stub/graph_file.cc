#include "halftone/python_stub/graph_file.h"

#include <algorithm>
#include <map>
#include <utility>

#include "halftone/graph/ir/text.h"

namespace halftone::python {
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

absl::StatusOr<std::unique_ptr<GraphFile>> GraphFile::Create(std::unique_ptr<ir::Graph> graph,
                                                             const Device& device, uint64_t seed) {
  std::unique_ptr<GraphFile> file(new GraphFile);
  file->name_ = graph->name();
  file->text_ = ir::Print(*graph);
  for (const ir::Node* input : graph->inputs()) file->input_names_.push_back(input->name());
  HT_ASSIGN_OR_RETURN(file->output_names_, OutputNames(*graph));
  runtime::CompileOptions options;
  options.device = device;
  options.seed = seed;
  options.notes = &file->notes_;
  HT_ASSIGN_OR_RETURN(file->executable_, runtime::Compile(std::move(graph), options, file->store_,
                                                          std::make_shared<runtime::Arena>()));
  HT_RETURN_IF_ERROR(file->store_.MaterialiseAll(seed));
  return file;
}

absl::StatusOr<Feeds> GraphFile::Run(const Feeds& feeds) {
  const runtime::StateLock lock(store_.guards());
  HT_RETURN_IF_ERROR(lock.status());
  std::vector<const void*> in;
  for (size_t i = 0; i < input_names_.size(); ++i) {
    const std::string& name = input_names_[i];
    const ir::ValueType& type = executable_->input_types()[i];
    const auto feed = feeds.find(name);
    if (feed == feeds.end()) {
      return InvalidArgument("graph @", name_, ": input \"", name, "\" is missing; expected ",
                             type.ToString());
    }
    const Tensor& value = feed->second;
    if (value.dtype() != type.dtype || value.shape() != type.shape) {
      return InvalidArgument("graph @", name_, ": input \"", name, "\": got ", value.TypeString(),
                             ", expected ", type.ToString());
    }
    in.push_back(value.raw());
  }
  if (feeds.size() != in.size()) {
    for (const auto& feed : feeds) {
      const bool known =
          std::find(input_names_.begin(), input_names_.end(), feed.first) != input_names_.end();
      if (!known) return InvalidArgument("graph @", name_, " has no input \"", feed.first, "\"");
    }
  }
  std::vector<Tensor> results;
  std::vector<void*> out;
  for (const ir::ValueType& type : executable_->output_types()) {
    HT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(type.dtype, type.shape));
    out.push_back(tensor.raw());
    results.push_back(std::move(tensor));
  }
  HT_RETURN_IF_ERROR(executable_->Run(in.data(), out.data(), run_count_++));
  Feeds named;
  for (size_t i = 0; i < results.size(); ++i) named[output_names_[i]] = results[i];
  return named;
}

absl::StatusOr<runtime::StateDict> GraphFile::Save() const {
  const runtime::StateLock lock(store_.guards());
  HT_RETURN_IF_ERROR(lock.status());
  return store_.Save();
}

absl::StatusOr<runtime::LoadReport> GraphFile::Load(const runtime::StateDict& state, bool strict) {
  const runtime::StateLock lock(store_.guards());
  HT_RETURN_IF_ERROR(lock.status());
  return store_.Load(state, {.strict = strict});
}

}  // namespace halftone::python
