// halftone_opt as a user starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class HalftoneOpt : public ::testing::Test {
 protected:
  Result Opt(const std::string& arguments) {
    return Start("tools/halftone_opt", step_ + " " + arguments);
  }
  const TempDir dir_;
  const std::string step_ = dir_.Write("step.txt", kTrainingStep);
};

TEST_F(HalftoneOpt, RunsThePassesNamedAndNoOthers) {
  const std::string graph = dir_.Write("sum.txt",
                                       "graph @sum(%x: f32[2]) {\n"
                                       "  %a = add(%x, %x)\n"
                                       "  %b = add(%x, %x)\n"
                                       "  %unread = exp(%x)\n"
                                       "  %c = mul(%a, %b)\n"
                                       "  return %c\n"
                                       "}\n");
  const Result merged =
      Start("tools/halftone_opt", graph + " --passes=eliminate-common-subexpressions");
  EXPECT_EQ(merged.status, 0) << merged.err;
  EXPECT_EQ(merged.out,
            "graph @sum(%x: f32[2]) {\n"
            "  %a = add(%x, %x) : f32[2]\n"
            "  %unread = exp(%x) : f32[2]\n"
            "  %c = mul(%a, %a) : f32[2]\n"
            "  return %c\n"
            "}\n");
  EXPECT_EQ(merged.err, "");
  const Result both =
      Start("tools/halftone_opt",
            graph + " --passes=eliminate-common-subexpressions,eliminate-dead-code");
  EXPECT_EQ(both.out,
            "graph @sum(%x: f32[2]) {\n"
            "  %a = add(%x, %x) : f32[2]\n"
            "  %c = mul(%a, %a) : f32[2]\n"
            "  return %c\n"
            "}\n");
}

TEST_F(HalftoneOpt, FoldsConstants) {
  const std::string graph = dir_.Write("fold.txt",
                                       "graph @fold() {\n"
                                       "  %a = constant {value=dense<f32[2]>(1, 2)} : f32[2]\n"
                                       "  %b = add(%a, %a)\n"
                                       "  return %b\n"
                                       "}\n");
  const Result run = Start("tools/halftone_opt", graph + " --passes=fold-constants");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("dense<f32[2]>(2, 4)"));
}

TEST_F(HalftoneOpt, LowersATrainingStepForEveryTarget) {
  for (const char* target : {"cpu-avx512bf16", "cpu-avx2", "cuda-sm90"}) {
    const Result run = Opt(std::string("--pipeline --target=") + target);
    EXPECT_EQ(run.status, 0) << run.err;
    EXPECT_THAT(run.out, HasSubstr("cast(%x) {to=bf16}"));
    EXPECT_THAT(run.out, HasSubstr("commit \"fc.weight\""));
    for (const char* marker : {"backward(", "optimizer()", "amp()"}) {
      EXPECT_THAT(run.out, Not(HasSubstr(marker)));
    }
  }
}

TEST_F(HalftoneOpt, PassesWorkAcrossFilesOfEitherForm) {
  const Result at_once = Opt("--passes=insert-amp-casts,autodiff,insert-optimizers");
  ASSERT_EQ(at_once.status, 0) << at_once.err;
  for (const char* form : {"half.txt", "half.pb"}) {
    const std::string half = dir_.Path(form);
    const Result first = Opt("--passes=insert-amp-casts --output=" + half);
    EXPECT_EQ(first.status, 0) << first.err;
    EXPECT_EQ(first.out, "");
    const Result second =
        Start("tools/halftone_opt", half + " --passes=autodiff,insert-optimizers");
    EXPECT_EQ(second.status, 0) << second.err;
    EXPECT_EQ(second.out, at_once.out) << form;
  }
}

TEST_F(HalftoneOpt, PrintsStatistics) {
  const Result run = Opt("--passes=autodiff --stats");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.err, StartsWith("pass "));
  EXPECT_THAT(run.err, HasSubstr("autodiff"));
  EXPECT_THAT(run.err, HasSubstr("gradients=1"));
  EXPECT_THAT(run.out, StartsWith("graph @step"));
}

TEST_F(HalftoneOpt, DumpsAfterEachChange) {
  const Result run = Opt("--passes=autodiff,fold-constants --dump=" + dir_.Path("steps"));
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(Bytes(dir_.Path("steps/00_input.txt")), HasSubstr("backward(%l)"));
  EXPECT_THAT(Bytes(dir_.Path("steps/01_autodiff.txt")), HasSubstr("cross_entropy_grad("));
}

TEST_F(HalftoneOpt, ListsPassesInTheOrderOfThePipeline) {
  const Result run = Start("tools/halftone_opt", "--list");
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, StartsWith("fold-constants\n"));
  EXPECT_LT(run.out.find("insert-amp-casts\n"), run.out.find("autodiff\n"));
  // Every name can be run alone, also on a graph that has nothing for it.
  std::string graph = dir_.Write("nothing.txt",
                                 "graph @nothing(%x: f32[2]) {\n"
                                 "  %y = exp(%x) : f32[2]\n"
                                 "  return %y\n"
                                 "}\n");
  std::string names = run.out.substr(0, run.out.size() - 1);
  std::replace(names.begin(), names.end(), '\n', ',');
  const Result all = Start("tools/halftone_opt", graph + " --passes=" + names);
  EXPECT_EQ(all.status, 0) << all.err;
  EXPECT_EQ(all.out, Bytes(graph));
}

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// Whoever changes the record of an op writes the page anew.
TEST_F(HalftoneOpt, OperatorsAreThoseOfTheDocs) {
  const Result run = Start("tools/halftone_opt", "--operators");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("# Operators\n"));
  EXPECT_THAT(run.out, HasSubstr("\n### softmax\n"));
  const std::vector<std::string> got = LinesOf(run.out);
  const std::vector<std::string> page = LinesOf(Bytes(HALFTONE_SOURCE_DIR "/docs/operators.md"));
  const auto [a, b] = std::mismatch(got.begin(), got.end(), page.begin(), page.end());
  const auto line = [](auto at, const auto& lines) { return at == lines.end() ? "" : *at; };
  EXPECT_TRUE(got == page) << "docs/operators.md differs from line " << b - page.begin() + 1
                           << " on:\n  " << line(b, page) << "\nwhere the records say:\n  "
                           << line(a, got)
                           << "\nhalftone_opt --operators > docs/operators.md writes it anew";
}

TEST_F(HalftoneOpt, RefusesWrongOptions) {
  const auto refusal = [this](const std::string& arguments) {
    const Result run = Opt(arguments);
    EXPECT_EQ(run.status, 2) << arguments;
    EXPECT_EQ(run.out, "") << arguments;
    return run.err;
  };
  EXPECT_EQ(refusal(""), "halftone_opt: expected either --passes=a,b or --pipeline\n");
  EXPECT_EQ(refusal("--pipeline --passes=autodiff"),
            "halftone_opt: expected either --passes=a,b or --pipeline\n");
  EXPECT_THAT(refusal("--passes=autodiff,fly"),
              StartsWith("halftone_opt: --passes: pass \"fly\" is unknown; "
                         "expected one of fold-constants, simplify, "));
  EXPECT_EQ(refusal("--passes=autodiff --passes=simplify"),
            "halftone_opt: --passes: given 2 times; expected one list, --passes=a,b\n");
  EXPECT_EQ(refusal("--pipeline --target=abacus"),
            "halftone_opt: --target: target \"abacus\" is unknown; expected one of "
            "cpu-scalar, cpu-avx2, cpu-avx512, cpu-avx512-nhwc, cpu-avx512bf16, "
            "cpu-avx512bf16-nhwc, reference, cuda-sm90\n");
  EXPECT_EQ(refusal("another.txt --pipeline"),
            "halftone_opt: expected one FILE; halftone_opt FILE --passes=a,b or --pipeline\n");
}

TEST_F(HalftoneOpt, ReportsFilesAndPassesThatFail) {
  const Result absent = Start("tools/halftone_opt", dir_.Path("absent.txt") + " --pipeline");
  EXPECT_EQ(absent.status, 1);
  EXPECT_EQ(absent.err,
            "halftone_opt: " + dir_.Path("absent.txt") + ": no such file or directory\n");
  const std::string broken = dir_.Write("broken.txt", "graph @broken(");
  const Result unreadable = Start("tools/halftone_opt", broken + " --pipeline");
  EXPECT_EQ(unreadable.status, 1);
  EXPECT_THAT(unreadable.err, StartsWith("halftone_opt: " + broken + ": line 1, column "));
  const Result suffix = Opt("--pipeline --output=" + dir_.Path("step.xml"));
  EXPECT_EQ(suffix.status, 1);
  EXPECT_THAT(suffix.err, HasSubstr("step.xml: the suffix does not name a form"));
  // An optimizer of a parameter that is not there: the pass says so, and the message names it.
  const std::string wrong = dir_.Write("wrong.txt",
                                       "graph @wrong(%x: f32[]) {\n"
                                       "  backward(%x)\n"
                                       "  %n, %a = optimizer() {params=[\"w\"], rule=\"sgd\"}\n"
                                       "  return %x\n"
                                       "}\n");
  const Result failed = Start("tools/halftone_opt", wrong + " --pipeline --stats");
  EXPECT_EQ(failed.status, 1);
  EXPECT_EQ(failed.out, "");
  EXPECT_THAT(failed.err, HasSubstr("halftone_opt: pass autodiff: "));
  EXPECT_THAT(failed.err, HasSubstr("insert-amp-casts"));  // it ran
}

TEST_F(HalftoneOpt, F70OnePolicyAGraph) {
  const std::string graph = dir_.Write("two.txt",
                                       "graph @two(%x: f32[4,4]) {\n"
                                       "  %m = matmul(%x, %x)\n"
                                       "  amp() {dtype=bf16}\n"
                                       "  amp() {dtype=f16}\n"
                                       "  return %m\n"
                                       "}\n");
  for (const char* program : {"tools/halftone_opt", "tools/halftone_run", "tools/halftone_dump"}) {
    const bool is_opt = program == std::string("tools/halftone_opt");
    const Result run = Start(program, graph + (is_opt ? " --pipeline" : ""));
    EXPECT_NE(run.status, 0) << program;
    EXPECT_THAT(run.err, HasSubstr("a second amp marker, beside amp(")) << program;
  }
}

// A chain of sums of 16 MiB each: 64 MiB are folded (kMaxFoldedBytes), however often the pass runs;
// the rest is left to the run.
TEST(HalftoneOptBounds, AShortFileFoldsIntoNoGigabytes) {
  const TempDir dir;
  std::string text = "graph @g() {\n  %c0 = constant {value=splat<f32[4194304]>(1)}\n";
  for (int i = 0; i < 80; ++i) text += Concat("  %c", i + 1, " = add(%c", i, ", %c0)\n");
  text += "  %one = constant {value=dense<f32[]>(1)}\n  %two = add(%one, %one)\n";
  dir.Write("g.txt", text + "  return %c80, %two\n}\n");
  const std::string file = dir.Path("g.txt") + " --output " + dir.Path("out.pb");
  const Result once = Start("tools/halftone_opt", file + " --passes=fold-constants --stats");
  EXPECT_EQ(once.status, 0) << once.output;
  EXPECT_TRUE(Has(once, "folded=5")) << once.output;  // four sums, and what is small
  const Result pipeline = Start("tools/halftone_opt", file + " --pipeline");
  EXPECT_EQ(pipeline.status, 0) << pipeline.output;
}

TEST(HalftoneOptBounds, AFullDiskIsNoSuccess) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "no /dev/full";
  const TempDir dir;
  dir.Write("g.txt", "graph @g(%x: f32[2]) {\n  return %x\n}\n");
  for (const char* program : {"tools/halftone_opt", "tools/halftone_dump"}) {
    const std::string options = program == std::string("tools/halftone_opt") ? " --pipeline" : "";
    const Result run = Start(program, dir.Path("g.txt") + options + " >/dev/full");
    EXPECT_EQ(run.status, 1);
    EXPECT_THAT(run.err, HasSubstr("cannot write standard output: No space left on device"));
  }
}

}  // namespace
}  // namespace halftone::testing
