// A plug-in that contains Halftone, opened twice by plugin_host.
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/tests/programs/separate/step.h"

// 0: everything was right. Writes and reads `file`: checkpoints are protobuf inside.
extern "C" int run_plugin(const char* file) {
  if (!halftone::testing::TwoByTwo::IsRight()) return 1;
  halftone::testing::TwoByTwo graph;
  if (!graph.Gives(5) || !graph.save_checkpoint(file).ok()) return 2;
  halftone::testing::TwoByTwo again;
  return again.load_checkpoint(file).ok() && again.Gives(-8) ? 0 : 3;
}
