// Where the tools get the graph that they show.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/target.h"
#include "halftone/graph/onnx/onnx.h"

namespace halftone::tools {

// A graph file, or an ONNX model, which is known by the suffix .onnx. A graph file has no values of
// variables. `inputs` are what the user gives the graph (ImportOptions::inputs); extents that a model
// leaves open are those of --dim. Errors: those of ReadGraphFile or onnx::ReadOnnx; OptionError for a
// --dim that is none.
absl::StatusOr<onnx::ImportedModel> ReadGraphOrModel(
    const std::string& path, const std::map<std::string, Tensor>& inputs = {});

// Reads `path`: such a file, or a folder that `--dump` or HALFTONE_DUMP wrote, which holds files
// 00_input.txt, 01_<pass>.txt, ..., or one folder that does.
//
// With an empty `after`, that is the file's graph, or the last one of the folder. Otherwise it is
// the graph after the last run of the pass `after`: of a file, the pipeline runs for `target` up to
// there (with the group of passes that it belongs to, if any); of a folder, the last file of that
// pass is read, and `after` may also be "input" or all of a file's stem, "07_autodiff".
//
// Errors: NotFound (no such file, or none of that pass, listing what there is), and what
// ReadGraphOrModel and the passes say.
absl::StatusOr<onnx::ImportedModel> LoadGraph(const std::string& path, const std::string& after,
                                              const ir::Target& target);

// The folder with the files 00_input.txt, ... of one dump: `path` itself, or the only folder in it.
// Errors: NotFound (neither; says what there is), FailedPrecondition (the system refuses).
absl::StatusOr<std::string> FindDumpFolder(const std::string& path);

// The graph as traced, of a folder too, with the values of its variables: those of `state` (a
// checkpoint, .npz or .safetensors), or if that is empty of the model or the folder, as far as they
// are there. Errors: those of LoadGraph and of the readers.
absl::StatusOr<ir::Model> LoadModel(const std::string& path, const std::string& after,
                                    const std::string& state, const ir::Target& target);

// Whether LoadGraph knows `after`, before anything is read. Error: NotFound listing the passes.
absl::Status CheckAfter(const std::string& path, const std::string& after);

}  // namespace halftone::tools
