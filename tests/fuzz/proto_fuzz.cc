// The protobuf form of graphs.
#include "halftone/graph/ir/proto.h"
#include "halftone/tests/fuzz/fuzz_target.h"
#include "halftone/tests/fuzz/graph_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto graph = halftone::ir::FromProtoBytes(halftone::testing::Bytes(data, size));
  if (graph.ok()) halftone::testing::CheckGraph(**graph);
  return 0;
}
