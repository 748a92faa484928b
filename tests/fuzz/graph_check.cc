#include "halftone/tests/fuzz/graph_check.h"

#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/verify.h"
#include "halftone/tests/fuzz/fuzz_target.h"

namespace halftone::testing {

void CheckGraph(const ir::Graph& graph) {
  ++accepted;
  const absl::Status verified = ir::Verify(graph);
  Require(verified.ok(), Message(verified));
  const std::string text = ir::Print(graph, ir::TextOptions::Lossless());
  const auto parsed = ir::Parse(text);
  Require(parsed.ok(), Message(parsed.status()) + "\n" + text);
  const auto bytes = ir::ToProtoBytes(**parsed);
  Require(bytes.ok(), Message(bytes.status()));
  const auto read = ir::FromProtoBytes(*bytes);
  Require(read.ok(), Message(read.status()));
  const std::string again = ir::Print(**read, ir::TextOptions::Lossless());
  Require(again == text, text + "\nbecame\n" + again);
}

}  // namespace halftone::testing
