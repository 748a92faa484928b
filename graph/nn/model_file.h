// Models in files: a graph with the values of its variables.
#pragma once

#include <string>

#include "halftone/graph/ir/model.h"

namespace halftone::nn {

// Writes `model` as ONNX where `path` ends in ".onnx"; else as a folder, which is made: the graph
// with its decisions (00_input.txt, and large constants beside it) and its values (variables.ckpt).
// A folder is what HALFTONE_DUMP writes, so the tools take it: halftone_run FOLDER --feed x=x.npy.
// Errors: those of onnx::WriteOnnx; NotFound and InvalidArgument (a variable without a value, or with
// one of another type); FailedPrecondition (the file system refuses).
absl::Status WriteModel(const std::string& path, const ir::Model& model);

// Reads what WriteModel has written, any ONNX model whose extents are all given, and a dump of a
// graph for inference. Untrusted files. Errors: those of onnx::ReadOnnx, of the readers of graphs and
// of checkpoints, each with the path; NotFound (no such file or folder, or no values).
absl::StatusOr<ir::Model> ReadModel(const std::string& path);

}  // namespace halftone::nn
