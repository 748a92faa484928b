#include "halftone/passes/progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace halftone::passes {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Heard {
  ProgressOptions Options() {
    ProgressOptions options;
    options.write = [this](const std::string& line) { lines.push_back(line); };
    options.now = [this] { return now; };
    return options;
  }
  double now = 100;
  std::vector<std::string> lines;
};

TEST(Progress, AShortCompilationSaysNothing) {
  Heard heard;
  Progress progress("@g", heard.Options());
  progress.Begin("pass simplify", 10);
  heard.now += 2.9;
  progress.Begin("pass autodiff", 10);
  progress.End();
  EXPECT_THAT(heard.lines, IsEmpty());
}

TEST(Progress, F61ALongCompilationSaysWhatItDoesButNotOften) {
  Heard heard;
  Progress progress("@g", heard.Options());
  progress.Begin("pass simplify", 10);
  heard.now += 4;
  progress.Begin("pass autodiff", 28000);
  heard.now += 1;
  progress.Begin("pass scale-losses", 56000);
  heard.now += 2.5;
  progress.Begin("kernels", 56001);
  progress.End();
  EXPECT_THAT(heard.lines,
              ElementsAre("halftone: compiling @g: pass autodiff, 28000 nodes, after 4 s",
                          "halftone: compiling @g: kernels, 56001 nodes, after 8 s"));
}

TEST(Progress, EveryStageWithItsTime) {
  Heard heard;
  ProgressOptions options = heard.Options();
  options.every_stage = true;
  Progress progress("@g", options);
  progress.Begin("pass simplify", 10);
  heard.now += 4;
  progress.Begin("pass autodiff", 12);
  heard.now += 0.25;
  progress.End();
  progress.End();
  EXPECT_THAT(heard.lines, ElementsAre("halftone: compiling @g: pass simplify, 10 nodes, 4.000 s",
                                       "halftone: compiling @g: pass autodiff, 12 nodes, 0.250 s"));
}

}  // namespace
}  // namespace halftone::passes
