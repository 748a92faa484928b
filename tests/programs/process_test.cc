// Programs as processes: how they end, two copies of the library in one, busy machines, numbers of
// threads, limits of memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "halftone/core/cpu_count.h"
#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/sanitizers.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;

TEST(Process, F07TwoPluginsThatEachContainTheLibrary) {
  const TempDir dir;
  const Result run = Start("tests/plugin_host", dir.Path("state") + " " + HALFTONE_PLUGINS);
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(run.out, "2 plug-ins ran\n");
}

struct End {
  const char* way;
  const char* out;
};

class ProcessEndsF08 : public ::testing::TestWithParam<End> {};

TEST_P(ProcessEndsF08, WithoutACrash) {
  const Result run = Start("tests/process_ends", GetParam().way);
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(run.out, GetParam().out);
  EXPECT_EQ(run.err, "");
}

INSTANTIATE_TEST_SUITE_P(All, ProcessEndsF08,
                         ::testing::Values(End{"static_graph", "call: right\n"},
                                           End{"first_call_at_end", "call at the end: right\n"},
                                           End{"another_call_at_end",
                                               "call: right\ncall at the end: right\n"},
                                           End{"thread_in_call", "thread: in a call\n"}),
                         [](const auto& end) { return std::string(end.param.way); });

class ProcessLimits : public ::testing::Test {
 protected:
  // Arguments of halftone_run.
  std::string Step() const {
    return dir_.Write("step.txt", kTrainingStep) + " --feed x=ones,t=zeros";
  }
  const TempDir dir_;
};

TEST_F(ProcessLimits, F57NumbersOfThreadsThatNoMachineHas) {
  for (const char* count : {"100000", "2147483647", "-1"}) {
    const Result run = Start("tools/halftone_run", Step() + " --threads=" + count);
    EXPECT_EQ(run.status, 2) << run.output;
    EXPECT_EQ(run.err, Concat("halftone_run: --threads: got ", count, ", expected 0..1024\n"));
    const Result trained = Start("examples/fashion_mnist", Concat("--threads=", count));
    EXPECT_EQ(trained.status, 2) << trained.output;
    EXPECT_EQ(trained.err, Concat("fashion_mnist: --threads: got ", count, ", expected 0..1024\n"));
  }
}

TEST_F(ProcessLimits, F57MoreThreadsThanCpusAreNoted) {
  const int count = AvailableCpus() + 1;
  const Result run = Start("tools/halftone_run", Concat(Step(), " --threads=", count));
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_THAT(run.err, HasSubstr(Concat("note: ", NoteOnThreads(count))));
}

// Whatever the limit cuts off, the program ends with one line. From less than its libraries need to
// start (the loader's words, status 127; Abseil's own, where the first thing that it makes does not
// fit) to enough.
TEST_F(ProcessLimits, F58AnyLimitOfMemoryIsALineOfErrorOrASuccess) {
  if (kMemoryIsSanitized) GTEST_SKIP() << "sanitizers need address space";
  // A product in f32, for which the library writes code wherever the test runs.
  const std::string step = dir_.Write("product.txt",
                                      "graph @product(%x: f32[8,4]) {\n"
                                      "  %y = matmul(%x, %x) {transpose_b=true}\n"
                                      "  return %y\n"
                                      "}\n") +
                           " --feed x=ones --threads=1";
  int failed = 0, ran = 0;
  for (int mib = 40; mib <= 400; mib += 20) {
    const Result run = Start("tools/halftone_run", step, Concat("ulimit -v ", mib * 1024, ";"));
    if (run.status == 127) continue;
    if (failed == 0 && run.err.find("low_level_alloc") != run.err.npos) continue;
    if (run.status == 0) {
      ++ran;
      continue;
    }
    ++failed;
    EXPECT_EQ(run.status, 2) << mib << " MiB: " << run.output;
    EXPECT_EQ(std::count(run.err.begin(), run.err.end(), '\n'), 1) << mib << ": " << run.err;
    EXPECT_THAT(run.err, ::testing::StartsWith("halftone_run: "));
  }
  EXPECT_GT(failed, 0);
  EXPECT_GT(ran, 0);
}

TEST_F(ProcessLimits, F58ThreadsThatTheSystemRefuses) {
  if (kMemoryIsSanitized) GTEST_SKIP() << "sanitizers need address space";
  const Result run = Start("tools/halftone_run", Step() + " --threads=1000", "ulimit -v 1000000;");
  EXPECT_EQ(run.status, 2) << run.output;
  EXPECT_THAT(run.err, HasSubstr("halftone_run: the system refuses 1000 threads for kernels"));
}

}  // namespace
}  // namespace halftone::testing
