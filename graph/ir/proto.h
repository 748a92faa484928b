// The protobuf form of a graph (proto/graph.proto): storage. Lossless with respect to the text
// form.
#pragma once

#include <memory>
#include <string>

#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

// Serialised halftone.GraphProto.
absl::StatusOr<std::string> ToProtoBytes(const Graph& graph);
// Untrusted bytes. Errors: DataLoss (not a graph), InvalidArgument (a graph that breaks the rules).
// The result is verified.
absl::StatusOr<std::unique_ptr<Graph>> FromProtoBytes(const std::string& bytes);

// Reads a graph from a file in either form (told apart by content), and writes the form that the
// suffix names (.txt text, .pb proto).
absl::StatusOr<std::unique_ptr<Graph>> ReadGraphFile(const std::string& path);
absl::Status WriteGraphFile(const Graph& graph, const std::string& path);

}  // namespace halftone::ir
