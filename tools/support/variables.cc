#include "halftone/tools/support/variables.h"

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

}  // namespace

absl::StatusOr<LoadedVariables> LoadVariables(const std::string& path, const ir::Graph& lowered,
                                              runtime::VariableStore& store) {
  HT_ASSIGN_OR_RETURN(runtime::Checkpoint checkpoint, runtime::ReadCheckpoint(path));
  LoadedVariables loaded;
  const auto count = checkpoint.tensors.find(kRunCount);
  if (count != checkpoint.tensors.end()) {
    const Tensor& value = count->second;
    if (value.dtype() != DType::kI64 || value.shape() != Shape{}) {
      return InvalidArgument(path, ": \"", kRunCount, "\" is ", value.TypeString(),
                             ", expected i64[]");
    }
    loaded.run_count = static_cast<uint64_t>(*value.data<int64_t>());
    checkpoint.tensors.erase(count);
  }
  std::vector<std::string> missing, unexpected;
  for (const ir::Variable& variable : lowered.variables()) {
    const auto value = checkpoint.tensors.find(variable.name);
    if (value == checkpoint.tensors.end()) {
      missing.push_back(variable.name);
      continue;
    }
    auto storage = std::make_shared<runtime::VariableStorage>(
        variable.type.dtype, variable.type.shape, variable.kind, variable.trainable, variable.init);
    HT_RETURN_IF_ERROR(Annotate(storage->Assign(value->second),
                                Concat(path, ": variable \"", variable.name, "\": ")));
    HT_RETURN_IF_ERROR(store.Bind(variable.name, std::move(storage)));
  }
  for (const auto& [name, value] : checkpoint.tensors) {
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
  runtime::Checkpoint checkpoint;
  HT_ASSIGN_OR_RETURN(checkpoint.tensors, store.Save());
  const Tensor count = Tensor::Empty(DType::kI64, Shape{});
  *count.data<int64_t>() = static_cast<int64_t>(run_count);
  checkpoint.tensors[kRunCount] = count;
  return runtime::WriteCheckpoint(path, checkpoint);
}

}  // namespace halftone::tools
