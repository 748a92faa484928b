#include "halftone/tools/support/graph_source.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "absl/flags/flag.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/graph/ir/number_text.h"
#include "halftone/graph/ir/proto.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/passes/pipeline.h"
#include "halftone/tools/support/variables.h"

ABSL_FLAG(std::vector<std::string>, dim, {},
          "extents that an ONNX model leaves open, with commas: batch=8,sequence=128")
    .OnUpdate([] { halftone::cli::NoteList("dim"); });

namespace halftone::tools {
namespace {

namespace fs = std::filesystem;

std::string PassOf(const fs::path& file) {
  const std::string stem = file.stem().string();
  return stem.substr(stem.find('_') + 1);
}

struct Folder {
  std::vector<fs::path> dumps;    // in the order of their numbers
  std::vector<fs::path> folders;  // in it
};

absl::StatusOr<Folder> List(const fs::path& path) {
  Folder folder;
  std::error_code error;
  for (fs::directory_iterator it(path, error), end; !error && it != end; it.increment(error)) {
    std::error_code ignored;
    if (it->is_directory(ignored)) folder.folders.push_back(it->path());
    if (passes::IsDumpName(it->path().filename().string())) folder.dumps.push_back(it->path());
  }
  if (error) {
    return FailedPrecondition(path.string(), ": cannot be listed: ", error.message());
  }
  std::sort(folder.folders.begin(), folder.folders.end());
  // "100_x" comes after "99_x".
  const auto number = [](const fs::path& file) {
    return std::strtoull(file.filename().c_str(), nullptr, 10);
  };
  std::sort(folder.dumps.begin(), folder.dumps.end(), [&](const auto& a, const auto& b) {
    return std::pair(number(a), a) < std::pair(number(b), b);
  });
  return folder;
}

std::string Names(const std::vector<fs::path>& paths) {
  std::string names;
  for (const fs::path& path : paths) names += (names.empty() ? "" : ", ") + path.stem().string();
  return names;
}

absl::StatusOr<std::map<std::string, int64_t>> ParseDims() {
  std::map<std::string, int64_t> dims;
  for (const std::string& item : absl::GetFlag(FLAGS_dim)) {
    const size_t equals = item.find('=');
    const auto extent =
        ir::ParseInt(equals == std::string::npos ? std::string() : item.substr(equals + 1));
    if (equals == 0 || !extent.ok() || *extent < 0) {
      return cli::WrongOption("--dim ", item, ": expected NAME=EXTENT");
    }
    dims[item.substr(0, equals)] = *extent;
  }
  return dims;
}

absl::StatusOr<onnx::ImportedModel> LoadFromFolder(const std::string& path,
                                                   const std::string& after) {
  HT_ASSIGN_OR_RETURN(const std::string dump_folder, FindDumpFolder(path));
  HT_ASSIGN_OR_RETURN(const Folder folder, List(dump_folder));
  const auto found =
      std::find_if(folder.dumps.rbegin(), folder.dumps.rend(), [&](const fs::path& file) {
        return after.empty() || PassOf(file) == after || file.stem() == after;
      });
  if (found == folder.dumps.rend()) {
    return NotFound(path, ": no graph after \"", after,
                    "\": no such pass, or it changed nothing; expected one of ",
                    Names(folder.dumps));
  }
  return ReadGraphOrModel(found->string());
}

}  // namespace

absl::StatusOr<onnx::ImportedModel> ReadGraphOrModel(const std::string& path,
                                                     const std::map<std::string, Tensor>& inputs) {
  onnx::ImportOptions options;
  HT_ASSIGN_OR_RETURN(options.dims, ParseDims());
  if (path.ends_with(".onnx")) {
    options.inputs = inputs;
    return onnx::ReadOnnx(path, options);
  }
  onnx::ImportedModel model;
  HT_ASSIGN_OR_RETURN(model.graph, ir::ReadGraphFile(path));
  return model;
}

absl::StatusOr<std::string> FindDumpFolder(const std::string& path) {
  HT_ASSIGN_OR_RETURN(const Folder folder, List(path));
  if (!folder.dumps.empty()) return path;
  if (folder.folders.size() == 1) {
    HT_ASSIGN_OR_RETURN(const Folder only, List(folder.folders[0]));
    if (!only.dumps.empty()) return folder.folders[0].string();
  }
  return NotFound(path, ": no file such as 00_input.txt, as --dump or HALFTONE_DUMP write them; ",
                  folder.folders.empty() ? "no folder in it either"
                                         : "it has the folders " + Names(folder.folders));
}

absl::Status CheckAfter(const std::string& path, const std::string& after) {
  std::error_code ignored;
  if (after.empty() || fs::is_directory(path, ignored)) return absl::OkStatus();
  return passes::MakePass(after).status();
}

absl::StatusOr<onnx::ImportedModel> LoadGraph(const std::string& path, const std::string& after,
                                              const ir::Target& target) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return LoadFromFolder(path, after);
  HT_ASSIGN_OR_RETURN(onnx::ImportedModel model, ReadGraphOrModel(path));
  if (after.empty()) return model;
  passes::PassManagerOptions options;
  options.stop_after = after;
  HT_RETURN_IF_ERROR(Annotate(runtime::Lower(*model.graph, target, options), path + ": "));
  return model;
}

absl::StatusOr<ir::Model> LoadModel(const std::string& path, const std::string& after,
                                    const std::string& state, const ir::Target& target) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  HT_ASSIGN_OR_RETURN(ir::Model model,
                      LoadGraph(path, is_folder && after.empty() ? "input" : after, target));
  std::string values = state;
  if (is_folder && values.empty()) {
    HT_ASSIGN_OR_RETURN(const std::string folder, FindDumpFolder(path));
    if (fs::exists(folder + "/variables.ckpt", ignored)) values = folder + "/variables.ckpt";
  }
  if (!values.empty()) HT_RETURN_IF_ERROR(AddState(values, model));
  return model;
}

}  // namespace halftone::tools
