#include "halftone/core/io/file.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/text.h"

namespace halftone::ir {
namespace {

bool HasSuffix(const std::string& path, const std::string& suffix) {
  return path.size() > suffix.size() &&
         path.compare(path.size() - suffix.size(), suffix.size(), suffix) == 0;
}

// The first byte of the proto form is the key of its field `version`; no text begins with it.
bool IsProto(const std::string& contents) { return !contents.empty() && contents[0] == '\x08'; }

}  // namespace

absl::StatusOr<std::unique_ptr<Graph>> ReadGraphFile(const std::string& path) {
  HT_ASSIGN_OR_RETURN(const std::string contents,
                      io::ReadFile(path, static_cast<int64_t>(kMaxFileBytes)));
  auto graph =
      IsProto(contents) ? FromProtoBytes(contents) : Parse(contents, io::DirectoryOf(path));
  if (!graph.ok()) return Annotate(graph.status(), path + ": ");
  return graph;
}

absl::Status WriteGraphFile(const Graph& graph, const std::string& path) {
  if (HasSuffix(path, ".pb")) {
    HT_ASSIGN_OR_RETURN(const std::string bytes, ToProtoBytes(graph));
    return io::WriteFileAtomically(path, bytes);
  }
  if (!HasSuffix(path, ".txt")) {
    return InvalidArgument(path, ": the suffix does not name a form; expected .txt or .pb");
  }
  // Constants first: a text that is there can be read.
  HT_RETURN_IF_ERROR(WriteConstantFiles(graph, io::DirectoryOf(path)));
  TextOptions options = TextOptions::Lossless();
  options.constant_files = true;
  return io::WriteFileAtomically(path, Print(graph, options));
}

}  // namespace halftone::ir
