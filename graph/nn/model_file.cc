#include "halftone/graph/nn/model_file.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/proto.h"
#include "halftone/graph/onnx/onnx.h"
#include "halftone/graph/runtime/checkpoint.h"

namespace halftone::nn {
namespace {

namespace fs = std::filesystem;

constexpr char kGraphFile[] = "00_input.txt", kValuesFile[] = "variables.ckpt";

// Makes the folder, or sees that it holds nothing that is read together with a model.
absl::Status PrepareFolder(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) return FailedPrecondition(path, ": cannot create: ", error.message());
  fs::directory_iterator it(path, error);
  for (const fs::directory_iterator end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name.starts_with("01_")) {
      return FailedPrecondition(path, ": holds the dump of a program; expected another folder");
    }
  }
  return error ? FailedPrecondition(path, ": cannot be listed: ", error.message())
               : absl::OkStatus();
}

}  // namespace

absl::Status WriteModel(const std::string& path, const ir::Model& model) {
  if (path.ends_with(".onnx")) return onnx::WriteOnnx(path, *model.graph, model.variables);
  HT_RETURN_IF_ERROR(ir::CheckValues(model));
  HT_RETURN_IF_ERROR(PrepareFolder(path));
  runtime::Checkpoint values;
  values.tensors = model.variables;
  HT_RETURN_IF_ERROR(runtime::WriteCheckpoint(Concat(path, "/", kValuesFile), values));
  return ir::WriteGraphFile(*model.graph, Concat(path, "/", kGraphFile));
}

absl::StatusOr<ir::Model> ReadModel(const std::string& path) {
  if (path.ends_with(".onnx")) return onnx::ReadOnnx(path);
  ir::Model model;
  HT_ASSIGN_OR_RETURN(model.graph, ir::ReadGraphFile(Concat(path, "/", kGraphFile)));
  const std::string values = Concat(path, "/", kValuesFile);
  HT_ASSIGN_OR_RETURN(runtime::Checkpoint checkpoint, runtime::ReadCheckpoint(values));
  for (auto& [name, value] : checkpoint.tensors) {
    // A dump has the state of the whole program.
    if (model.graph->FindVariable(name) != nullptr) model.variables[name] = std::move(value);
  }
  HT_RETURN_IF_ERROR(Annotate(ir::CheckValues(model), values + ": "));
  return model;
}

}  // namespace halftone::nn
