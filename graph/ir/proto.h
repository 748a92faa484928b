// The protobuf form of a graph (proto/graph.proto): storage. Lossless with respect to the text
// form.
#pragma once

#include <memory>
#include <string>

#include "halftone/graph/ir/graph.h"

namespace halftone::ir {

// Serialised halftone.GraphProto. Errors: Internal (the graph breaks an invariant),
// ResourceExhausted (over 2 GiB).
absl::StatusOr<std::string> ToProtoBytes(const Graph& graph);
// Untrusted bytes. Errors: DataLoss (not a graph), InvalidArgument (a graph that breaks the rules).
// The result is verified.
absl::StatusOr<std::unique_ptr<Graph>> FromProtoBytes(const std::string& bytes);

// Reads a graph from a file in either form (told apart by content), and writes the form that the
// suffix names (.txt text, .pb proto). Constants over 1,024 elements of a text lie in files beside
// it. Errors carry the path; writing never leaves half a file.
absl::StatusOr<std::unique_ptr<Graph>> ReadGraphFile(const std::string& path);
absl::Status WriteGraphFile(const Graph& graph, const std::string& path);

}  // namespace halftone::ir
