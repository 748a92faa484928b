// ONNX: graphs to and from the model files that PyTorch, ONNX Runtime and others exchange.
// docs/onnx.md lists the operators that are covered.
//
// Source: https://onnx.ai/onnx/repo-docs/IR.html; operators: https://onnx.ai/onnx/operators/
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/core/tensor.h"
#include "halftone/graph/ir/model.h"

namespace halftone::onnx {

// What `graph`, a forward step, computes: its inputs, its outputs and what they depend on.
// Optimizers, backward and other state changes are no part of it. Opset 17; shapes are fixed.
// `variables` are the values of parameters and buffers, which become initializers.
// Errors: NotFound (a variable without a value), InvalidArgument (a value of another type),
// Unimplemented (an op without a counterpart, with its node), ResourceExhausted (over 2 GiB).
absl::StatusOr<std::string> ToOnnxBytes(const ir::Graph& graph,
                                        const std::map<std::string, Tensor>& variables);
// The same as a file. Errors: also those of io::WriteFileAtomically; the file is then as before.
absl::Status WriteOnnx(const std::string& path, const ir::Graph& graph,
                       const std::map<std::string, Tensor>& variables);

struct ImportOptions {
  // Extents by the names that a model leaves open, {"batch", 8}.
  std::map<std::string, int64_t> dims = {};
  // Values of inputs, by name. Their shapes are the inputs' where the model leaves extents open, and
  // where the model makes a shape of a value (a Reshape whose shape is an input) the graph is made
  // for this one.
  std::map<std::string, Tensor> inputs = {};
};

// Its variables are the initializers of float dtypes and rank 1 or more; others are constants. Notes
// name inputs whose values are part of the graph.
using ImportedModel = ir::Model;

// Untrusted bytes, of opset 7 to 28. Errors: DataLoss (not a model, or cut short), InvalidArgument
// (a model that breaks ONNX's rules; an open extent that `options` does not give), Unimplemented (an
// operator, attribute, dtype or form that is not covered), each naming node and operator.
absl::StatusOr<ImportedModel> FromOnnxBytes(const std::string& bytes,
                                            const ImportOptions& options = {});
// The same of a file, whose path begins the errors; also NotFound and FailedPrecondition.
absl::StatusOr<ImportedModel> ReadOnnx(const std::string& path, const ImportOptions& options = {});

}  // namespace halftone::onnx
