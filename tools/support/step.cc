#include "halftone/tools/support/step.h"

#include <cstring>
#include <map>

#include "halftone/cli/exit_status.h"
#include "halftone/graph/ir/number_text.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/passes/rewrite/fuse.h"

namespace halftone::tools {
namespace {

// "h" or "h#1".
ir::Value FindNodeValue(const ir::Graph& graph, const std::string& name) {
  const size_t hash = name.find('#');
  int64_t index = 0;
  if (hash != std::string::npos) {
    const auto number = ir::ParseInt(name.substr(hash + 1));
    if (!number.ok()) return {};
    index = *number;
  }
  const ir::Node* node = graph.FindNode(name.substr(0, hash));
  if (node == nullptr || index < 0 || index >= node->num_outputs()) return {};
  return node->output(static_cast<int>(index));
}

// The graph after the whole pipeline; `graph` stays.
absl::StatusOr<std::unique_ptr<ir::Graph>> LowerClone(const ir::Graph& graph, const Device& device,
                                                      const std::string& dump_dir, bool fuse,
                                                      std::vector<std::string>* notes) {
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<ir::Target> target, runtime::TargetOf(device));
  passes::PassManagerOptions options;
  options.dump_dir = dump_dir;
  std::unique_ptr<ir::Graph> lowered = graph.Clone();
  if (!fuse) passes::ForbidFusion(*lowered);
  runtime::PassReport report;
  HT_RETURN_IF_ERROR(runtime::Lower(*lowered, *target, options, &report));
  *notes = std::move(report.notes);
  return lowered;
}

}  // namespace

ir::Value FindValue(const ir::Graph& graph, const std::string& name) {
  if (!name.empty() && name[0] == '%') return FindNodeValue(graph, name.substr(1));
  for (const ir::Output& output : graph.outputs()) {
    if (!name.empty() && output.name == name) return output.value;
  }
  if (const ir::Value value = FindNodeValue(graph, name); value.valid()) return value;
  for (const ir::Node* node : graph.variable_nodes()) {
    if (node->attrs().GetString("name") == name) return node->output();
  }
  return {};
}

absl::StatusOr<FetchedGraph> LowerForFetches(const ir::Graph& graph,
                                             const std::vector<std::string>& names,
                                             const Device& device, const std::string& dump_dir,
                                             bool fuse) {
  FetchedGraph fetched;
  HT_ASSIGN_OR_RETURN(fetched.lowered, LowerClone(graph, device, dump_dir, fuse, &fetched.notes));
  if (names.empty()) {
    for (const ir::Output& output : graph.outputs())
      fetched.names.push_back(ir::OutputName(output));
    return fetched;
  }
  fetched.names = names;
  const std::unique_ptr<ir::Graph> extended = graph.Clone();
  std::map<std::string, size_t> kept;  // name -> position among the outputs
  for (const std::string& name : names) {
    if (FindValue(*fetched.lowered, name).valid()) continue;
    const ir::Value value = FindValue(*extended, name);
    if (!value.valid()) {
      return cli::WrongOption("--fetch: the graph has no output, node or variable \"", name, "\"");
    }
    kept.emplace(name, extended->outputs().size());
    extended->outputs().push_back({"", value});
  }
  if (!kept.empty()) {
    HT_ASSIGN_OR_RETURN(fetched.lowered,
                        LowerClone(*extended, device, dump_dir, fuse, &fetched.notes));
  }
  std::vector<ir::Output> outputs;
  for (const std::string& name : names) {
    const auto it = kept.find(name);
    outputs.push_back({"", it == kept.end() ? FindValue(*fetched.lowered, name)
                                            : fetched.lowered->outputs()[it->second].value});
    if (it != kept.end()) {
      fetched.notes.push_back(name +
                              " does not outlive the passes; kept as an output of the graph");
    }
  }
  fetched.lowered->outputs() = std::move(outputs);
  return fetched;
}

Tensor ToPlain(const Tensor& tensor, const ir::ValueType& type) {
  if (type.layout == ir::Layout::kPlain) return tensor;
  const Tensor plain = Tensor::Empty(type.dtype, type.shape);
  const ir::StridedAxes axes = ir::StridedAxesOf(type);
  const auto size = static_cast<int64_t>(SizeOf(type.dtype));
  const auto* const from = static_cast<const char*>(tensor.raw());
  auto* const to = static_cast<char*>(plain.raw());
  for (int64_t i = 0; i < plain.num_elements(); ++i) {
    int64_t rest = i, at = 0;
    for (size_t axis = axes.extents.size(); axis-- > 0;) {
      at += rest % axes.extents[axis] * axes.strides[axis];
      rest /= axes.extents[axis];
    }
    std::memcpy(to + i * size, from + at * size, static_cast<size_t>(size));
  }
  return plain;
}

absl::StatusOr<Step> Step::Create(std::unique_ptr<ir::Graph> lowered, const Device& device,
                                  uint64_t seed, runtime::VariableStore& store) {
  Step step;
  HT_ASSIGN_OR_RETURN(step.executable_,
                      runtime::Executable::Create(std::move(lowered), device, seed, store,
                                                  std::make_shared<runtime::Arena>()));
  return step;
}

absl::StatusOr<std::vector<Tensor>> Step::Run(const std::vector<Tensor>& feeds,
                                              uint64_t run_count) {
  std::vector<const void*> in;
  std::vector<void*> out;
  std::vector<Tensor> results;
  for (const Tensor& feed : feeds) in.push_back(feed.raw());
  for (const ir::ValueType& type : executable_->output_types()) {
    HT_ASSIGN_OR_RETURN(Tensor result, Tensor::Allocate(type.dtype, type.shape));
    out.push_back(result.raw());
    results.push_back(std::move(result));
  }
  HT_RETURN_IF_ERROR(executable_->Run(in.data(), out.data(), run_count));
  for (size_t i = 0; i < results.size(); ++i) {
    results[i] = ToPlain(results[i], executable_->output_types()[i]);
  }
  return results;
}

}  // namespace halftone::tools
