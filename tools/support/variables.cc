#include "halftone/tools/support/variables.h"

#include <string_view>

#include "halftone/core/io/npz.h"
#include "halftone/core/io/safetensors.h"
#include "halftone/graph/runtime/checkpoint.h"

namespace halftone::tools {
namespace {

// As nn::Graph::state_dict names it.
constexpr char kRunCount[] = "run_count";

// "2 variables (a, b)", of many the first few.
std::string List(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string text = Concat(names.size(), names.size() == 1 ? " variable (" : " variables (");
  for (size_t i = 0; i < names.size() && i < kShown; ++i) text += (i > 0 ? ", " : "") + names[i];
  return text + (names.size() > kShown ? ", ...)" : ")");
}

bool HasEnding(std::string_view path, std::string_view ending) {
  return path.size() >= ending.size() && path.substr(path.size() - ending.size()) == ending;
}

absl::Status WriteState(const std::string& path, runtime::StateDict state) {
  if (HasEnding(path, ".npz")) return io::WriteNpz(path, state);
  if (HasEnding(path, ".safetensors")) return io::WriteSafetensors(path, {std::move(state), {}});
  runtime::Checkpoint checkpoint;
  checkpoint.tensors = std::move(state);
  return runtime::WriteCheckpoint(path, checkpoint);
}

absl::Status Bind(const ir::Variable& variable, const Tensor& value,
                  runtime::VariableStore& store) {
  auto storage = std::make_shared<runtime::VariableStorage>(
      variable.type.dtype, variable.type.shape, variable.kind, variable.trainable, variable.init);
  HT_RETURN_IF_ERROR(
      Annotate(storage->Assign(value), Concat("variable \"", variable.name, "\": ")));
  return store.Bind(variable.name, std::move(storage));
}

}  // namespace

absl::StatusOr<runtime::StateDict> ReadState(const std::string& path) {
  if (HasEnding(path, ".npz")) return io::ReadNpz(path);
  if (HasEnding(path, ".safetensors")) {
    HT_ASSIGN_OR_RETURN(io::Safetensors file, io::ReadSafetensors(path));
    return std::move(file.tensors);
  }
  HT_ASSIGN_OR_RETURN(runtime::Checkpoint checkpoint, runtime::ReadCheckpoint(path));
  return std::move(checkpoint.tensors);
}

absl::Status AddState(const std::string& path, ir::Model& model) {
  HT_ASSIGN_OR_RETURN(runtime::StateDict state, ReadState(path));
  for (auto& [name, value] : state) {
    if (model.graph->FindVariable(name) != nullptr) model.variables[name] = std::move(value);
  }
  return absl::OkStatus();
}

absl::Status GiveVariables(const std::map<std::string, Tensor>& values, const ir::Graph& lowered,
                           runtime::VariableStore& store) {
  for (const ir::Variable& variable : lowered.variables()) {
    const auto value = values.find(variable.name);
    if (value == values.end() || store.Find(variable.name) != nullptr) continue;
    HT_RETURN_IF_ERROR(Bind(variable, value->second, store));
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadedVariables> LoadVariables(const std::string& path, const ir::Graph& lowered,
                                              runtime::VariableStore& store) {
  HT_ASSIGN_OR_RETURN(runtime::StateDict state, ReadState(path));
  LoadedVariables loaded;
  const auto count = state.find(kRunCount);
  if (count != state.end()) {
    const Tensor& value = count->second;
    if (value.dtype() != DType::kI64 || value.shape() != Shape{}) {
      return InvalidArgument(path, ": \"", kRunCount, "\" is ", value.TypeString(),
                             ", expected i64[]");
    }
    loaded.run_count = static_cast<uint64_t>(*value.data<int64_t>());
    state.erase(count);
  }
  std::vector<std::string> missing, unexpected;
  for (const ir::Variable& variable : lowered.variables()) {
    const auto value = state.find(variable.name);
    if (value == state.end()) {
      missing.push_back(variable.name);
      continue;
    }
    HT_RETURN_IF_ERROR(Annotate(Bind(variable, value->second, store), path + ": "));
  }
  for (const auto& [name, value] : state) {
    if (lowered.FindVariable(name) == nullptr) unexpected.push_back(name);
  }
  if (!missing.empty()) {
    loaded.notes.push_back(Concat(path, " lacks ", List(missing), ": initialised by --seed"));
  }
  if (!unexpected.empty()) {
    loaded.notes.push_back(Concat(path, " has ", List(unexpected), " that the graph does not use"));
  }
  return loaded;
}

absl::Status SaveVariables(const std::string& path, const runtime::VariableStore& store,
                           uint64_t run_count) {
  HT_ASSIGN_OR_RETURN(runtime::StateDict state, store.Save());
  const Tensor count = Tensor::Empty(DType::kI64, Shape{});
  *count.data<int64_t>() = static_cast<int64_t>(run_count);
  state[kRunCount] = count;
  return WriteState(path, std::move(state));
}

}  // namespace halftone::tools
