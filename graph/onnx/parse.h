// The bytes of an ONNX file as a Model, and back.
#pragma once

#include <string>

#include "halftone/graph/onnx/model.h"

namespace halftone::onnx {

// Untrusted bytes. Errors: DataLoss (not a model, or cut short), InvalidArgument (a tensor whose
// bytes do not fit its shape, a count out of bounds), Unimplemented (a newer version, a type that no
// tensor has, external data, subgraphs).
absl::StatusOr<Model> ParseModel(const std::string& bytes);

// Errors: ResourceExhausted (over 2 GiB, which no such file can have).
absl::StatusOr<std::string> SerializeModel(const Model& model);

}  // namespace halftone::onnx
