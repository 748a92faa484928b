// ONNX models.
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/onnx/onnx.h"
#include "halftone/tests/fuzz/fuzz_target.h"
#include "halftone/tests/fuzz/graph_check.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using halftone::testing::Require;
  halftone::onnx::ImportOptions options;
  options.dims = {{"batch", 2}, {"", 2}};
  const auto model = halftone::onnx::FromOnnxBytes(halftone::testing::Bytes(data, size), options);
  if (!model.ok()) return 0;
  halftone::testing::CheckGraph(*model->graph);
  // What goes out again comes in again.
  const auto bytes = halftone::onnx::ToOnnxBytes(*model->graph, model->variables);
  if (!bytes.ok()) return 0;
  const auto again = halftone::onnx::FromOnnxBytes(*bytes, options);
  Require(again.ok(), halftone::Message(again.status()));
  return 0;
}
