// process_ends WAY: ends while Halftone is in use. Prints what was right; exit status 0.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "halftone/tests/programs/separate/step.h"

namespace {

using halftone::testing::TwoByTwo;

bool call_at_end = false;

// Before anything of the library's that a first call makes, so destroyed after it.
struct Last {
  ~Last() {
    if (call_at_end) std::printf("call at the end: %s\n", TwoByTwo::IsRight() ? "right" : "wrong");
  }
};
const Last last;
TwoByTwo graph;  // destroyed at the end too

bool Is(const char* way, const char* name) { return std::strcmp(way, name) == 0; }

}  // namespace

int main(int argc, char** argv) {
  const char* const way = argc > 1 ? argv[1] : "";
  if (Is(way, "static_graph")) {
    std::printf("call: %s\n", graph.Gives(5) ? "right" : "wrong");
  } else if (Is(way, "first_call_at_end")) {
    call_at_end = true;
  } else if (Is(way, "another_call_at_end")) {
    std::printf("call: %s\n", graph.Gives(5) ? "right" : "wrong");
    call_at_end = true;
  } else if (Is(way, "thread_in_call")) {
    static std::atomic<int> calls{0};
    std::thread([] {
      auto* const own = new TwoByTwo;
      for (;;) {
        (void)(*own)({halftone::Tensor::Of(halftone::DType::kF32, {2}, {2, 3})}).ok();
        ++calls;
      }
    }).detach();
    while (calls < 10) std::this_thread::yield();
    std::printf("thread: in a call\n");
    std::fflush(stdout);
    std::exit(0);
  } else {
    std::fprintf(stderr, "process_ends: no way \"%s\"\n", way);
    return 2;
  }
  return 0;
}
