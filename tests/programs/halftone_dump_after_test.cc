// halftone_dump --after, on files and on folders that a program dumped.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

namespace fs = std::filesystem;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string Graph(const std::string& name) {
  return "graph @" + name + "(%x: f32[]) {\n  return %x\n}\n";
}

class HalftoneDumpAfter : public ::testing::Test {
 protected:
  Result Dump(const std::string& arguments) { return Start("tools/halftone_dump", arguments); }
  void Write(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(folder_.Path(name)).parent_path());
    folder_.Write(name, text);
  }
  const TempDir folder_;
  const std::string step_ = folder_.Write("step.txt", kTrainingStep);
};

TEST_F(HalftoneDumpAfter, RunsThePipelineUpToThePass) {
  const Result casts = Dump(step_ + " --after=insert-amp-casts");
  EXPECT_EQ(casts.status, 0) << casts.err;
  EXPECT_THAT(casts.out, HasSubstr("{to=bf16}"));
  EXPECT_THAT(casts.out, HasSubstr(" = backward("));
  const Result gradients = Dump(step_ + " --after=autodiff");
  EXPECT_EQ(gradients.status, 0) << gradients.err;
  EXPECT_THAT(gradients.out, HasSubstr(" = cross_entropy_grad("));
  EXPECT_THAT(gradients.out, Not(HasSubstr(" = backward(")));
  EXPECT_THAT(gradients.out, HasSubstr(" = optimizer("));
}

// What the tool makes of the input is what the pass manager wrote down on its way.
TEST_F(HalftoneDumpAfter, AgreesWithTheDumpOfThatPass) {
  const std::string dumps = folder_.Path("dumps");
  const Result opt = Start("tools/halftone_opt", step_ + " --pipeline --dump=" + dumps);
  ASSERT_EQ(opt.status, 0) << opt.err;
  for (const char* pass : {"insert-amp-casts", "autodiff", "insert-optimizers"}) {
    const Result of_file = Dump(step_ + " --after=" + pass);
    const Result of_folder = Dump(dumps + " --after=" + pass);
    EXPECT_EQ(of_folder.status, 0) << of_folder.err;
    EXPECT_EQ(of_file.out, of_folder.out);
  }
  EXPECT_EQ(Dump(dumps + " --after=input").out, Dump(step_).out);
}

// A dump keeps the decisions that were taken for the device that ran it.
TEST_F(HalftoneDumpAfter, DumpsExplainTheirPrecision) {
  const std::string dumps = folder_.Path("dumps");
  const Result opt = Start("tools/halftone_opt", step_ + " --pipeline --dump=" + dumps);
  ASSERT_EQ(opt.status, 0) << opt.err;
  const Result amp = Dump(dumps + " --amp");
  EXPECT_EQ(amp.status, 0) << amp.err;
  EXPECT_THAT(amp.out, ContainsRegex("y +bf16 +allow"));
}

TEST_F(HalftoneDumpAfter, AppliesToTables) {
  const Result cost = Dump(step_ + " --after=autodiff --cost");
  EXPECT_EQ(cost.status, 0) << cost.err;
  EXPECT_THAT(cost.out, HasSubstr("cross_entropy_grad"));
  const std::string dumps = folder_.Path("dumps");
  ASSERT_EQ(Start("tools/halftone_opt", step_ + " --pipeline --dump=" + dumps).status, 0);
  const std::string diff = "--diff " + step_ + " " + dumps;
  EXPECT_EQ(Dump(diff + " --after=autodiff").status, 0);
  EXPECT_EQ(Dump(diff).status, 1);  // as traced, and as compiled
}

TEST_F(HalftoneDumpAfter, PicksAFileOfAFolder) {
  Write("dump/00_input.txt", Graph("first"));
  Write("dump/07_simplify.txt", Graph("early"));
  Write("dump/99_simplify.txt", Graph("late"));
  Write("dump/100_autodiff.txt", Graph("last"));
  Write("dump/notes.txt", "not a graph");
  const std::string dump = folder_.Path("dump");
  EXPECT_THAT(Dump(dump).out, HasSubstr("graph @last("));
  EXPECT_THAT(Dump(dump + " --after=simplify").out, HasSubstr("graph @late("));
  EXPECT_THAT(Dump(dump + " --after=07_simplify").out, HasSubstr("graph @early("));
  EXPECT_THAT(Dump(dump + " --after=input").out, HasSubstr("graph @first("));
  const Result absent = Dump(dump + " --after=clean-up-casts");
  EXPECT_EQ(absent.status, 1);
  EXPECT_THAT(
      absent.err,
      HasSubstr(dump + ": no graph after \"clean-up-casts\": no such pass, or it changed nothing; "
                       "expected one of 00_input, 07_simplify, 99_simplify, 100_autodiff"));
}

TEST_F(HalftoneDumpAfter, LooksIntoTheOnlyFolderOfAFolder) {
  Write("dump/step_0/00_input.txt", Graph("inner"));
  const std::string dump = folder_.Path("dump");
  EXPECT_THAT(Dump(dump).out, HasSubstr("graph @inner("));
  Write("dump/step_1/00_input.txt", Graph("other"));
  const Result two = Dump(dump);
  EXPECT_EQ(two.status, 1);
  EXPECT_THAT(two.err, HasSubstr(dump + ": no file such as 00_input.txt, "
                                        "as --dump or HALFTONE_DUMP write them; "
                                        "it has the folders step_0, step_1"));
  Write("none/readme", "");
  EXPECT_THAT(Dump(folder_.Path("none")).err, HasSubstr("write them; no folder in it either"));
}

TEST_F(HalftoneDumpAfter, AFolderThatCannotBeListed) {
  if (geteuid() == 0) GTEST_SKIP() << "root lists every folder";
  Write("dump/00_input.txt", Graph("g"));
  const std::string dump = folder_.Path("dump");
  ASSERT_EQ(chmod(dump.c_str(), 0), 0);
  const Result run = Dump(dump);
  chmod(dump.c_str(), 0700);
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr(dump + ": cannot be listed: Permission denied"));
}

TEST_F(HalftoneDumpAfter, UnknownPass) {
  const Result run = Dump(step_ + " --after=inline");
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(run.err, HasSubstr("--after: pass \"inline\" is unknown; "
                                 "expected one of fold-constants, simplify, "));
}

// A pass that fails: the op has no such attribute.
TEST_F(HalftoneDumpAfter, ReportsAGraphThatCannotBeLowered) {
  const std::string path = folder_.Write("bad.txt",
                                         "graph @bad(%x: f32[2]) {\n"
                                         "  amp() {deny=[\"exp[base=2]\"], dtype=bf16}\n"
                                         "  return %x\n"
                                         "}\n");
  const Result run = Dump(path + " --after=autodiff");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr(path + ": pass insert-amp-casts: "));
}

}  // namespace
}  // namespace halftone::testing
