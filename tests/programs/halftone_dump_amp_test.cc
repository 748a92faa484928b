// halftone_dump --amp: --why, --what-if, --policy, --write-policy and --diff, on a graph small enough
// to decide by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

#include "halftone/passes/amp/policy.h"
#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kEntropy[] =
    "graph @entropy(%x: f32[4,4]) {\n"
    "  amp() {dtype=bf16}\n"
    "  %h = matmul(%x, %x) @\"head\" loc(\"model.cc\":3)\n"
    "  %p = sigmoid(%h)\n"
    "  %l = log(%p)\n"
    "  %m = mul(%p, %l)\n"
    "  %o = matmul(%m, %x)\n"
    "  return %o\n"
    "}\n";
constexpr char kLog[] =
    "l (log): f32: denied: near 1 a rounded argument costs all digits, and in f16 it may have "
    "underflowed to 0, whose log is -inf\n";

class HalftoneDumpAmp : public ::testing::Test {
 protected:
  Result Dump(const std::string& options) {
    return Start("tools/halftone_dump", folder_.Write("graph.txt", kEntropy) + " --amp " + options);
  }
  std::string Policy(const std::string& name, const std::string& text) {
    return folder_.Write(name, text);
  }
  const TempDir folder_;
};

TEST_F(HalftoneDumpAmp, WhyFollowsTheChain) {
  const Result below = Dump("--why m");
  EXPECT_EQ(below.status, 0) << below.err;
  EXPECT_EQ(below.out, std::string("m (mul): f32: denied, because reads l\n  ") + kLog);
  const Result above = Dump("--why p");
  EXPECT_THAT(above.out, StartsWith("p (sigmoid): f32: denied, because l reads it: near 1 "));
  EXPECT_THAT(above.out, HasSubstr(std::string("\n  ") + kLog));
  EXPECT_THAT(Dump("--why head/h").out,
              StartsWith("head/h (matmul, model.cc:3): bf16: allowed: matrix units "));
}

TEST_F(HalftoneDumpAmp, WhyOfWhatIsNotThere) {
  const Result run = Dump("--why head/g");
  EXPECT_EQ(run.status, 1);
  EXPECT_THAT(run.err, HasSubstr("no node is called \"head/g\"; nearest: head/h"));
}

// %o reads %m and %x in bf16: two casts of 16 elements, 96 bytes each; its result is cast back. The
// cast of %x stays, %h reads it.
TEST_F(HalftoneDumpAmp, WhatIfShowsDecisionsCastsAndBytes) {
  const Result run = Dump("--what-if deny:o");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out,
            "node  before  after  why\n"
            "o     bf16    f32    denied: policy: deny o\n"
            "before: 2 of 5 nodes in 16 bit, 4 casts move 384 B, 192 B saved\n"
            "after: 1 of 5 nodes in 16 bit, 2 casts move 192 B, 96 B saved\n");
  EXPECT_THAT(Dump("--what-if allow:matmul").out, StartsWith("no decision differs\n"));
  EXPECT_THAT(Dump("--what-if level:force,deny:head/*").out, HasSubstr("l       f32     bf16"));
}

// A cast reads 4 bytes an element and writes 2, or the other way round: of %w 12 elements, of %x 32,
// of %y and its gradient 24. The gradient of %w leaves its kernel in f32.
TEST_F(HalftoneDumpAmp, EndsWithTheCastsOfAStep) {
  const std::string step = folder_.Write("step.txt", kTrainingStep);
  const Result run = Start("tools/halftone_dump", step + " --amp");
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_THAT(run.out,
              ::testing::EndsWith("\n"
                                  "casts a step  at each operand  bytes  as it runs  bytes\n"
                                  "weights                     1   72 B           0    0 B\n"
                                  "activations                 2  336 B           1  192 B\n"
                                  "gradients                   2  216 B           0    0 B\n"
                                  "all                         5  624 B           1  192 B\n"
                                  "casts of weights kept from step to step: 1\n"));
  const Result json = Start("tools/halftone_dump", step + " --amp --format=json");
  EXPECT_THAT(json.out, HasSubstr("\"step_casts\": {"));
  EXPECT_THAT(json.out, HasSubstr("\"kept\": 1"));
}

TEST_F(HalftoneDumpAmp, WhatIfRefusesWhatIsNoEntry) {
  const std::pair<const char*, const char*> cases[] = {
      {"softmax", "--what-if: \"softmax\"; expected for example deny:softmax"},
      {"forbid:softmax", "--what-if: \"forbid\" is unknown; expected dtype, level, allow"},
      {"deny:softmax[axes=1]", "softmax has no attribute \"axes\""},
      {"level:all", "--what-if: level is \"all\""}};
  for (const auto& [changes, message] : cases) {
    const Result run = Dump(std::string("--what-if '") + changes + "'");
    EXPECT_EQ(run.status, 1) << changes;
    EXPECT_THAT(run.err, HasSubstr(message)) << changes;
    EXPECT_EQ(run.out, "");
  }
}

TEST_F(HalftoneDumpAmp, ThePolicyInForceIsWrittenEditedAndRead) {
  const std::string path = folder_.Path("policy.txt");
  const Result written = Dump("--write-policy " + path);
  EXPECT_EQ(written.status, 0) << written.err;
  std::ifstream in(path);
  std::ostringstream contents;
  contents << in.rdbuf();
  EXPECT_THAT(contents.str(), HasSubstr("\ndtype: \"bf16\"\n"));
  EXPECT_THAT(contents.str(), HasSubstr("# allow: \"matmul\"  # 2 in 16 bit, 0 in f32\n"));
  const auto policy = amp::Policy::ReadFile(path);
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(*policy, amp::Policy{.dtype = DType::kBF16});
  EXPECT_EQ(Dump("--policy " + path).out, Dump("").out);
  std::ofstream(path, std::ios::app) << "deny: \"head/*\"\n";
  EXPECT_THAT(Dump("--policy " + path).out, HasSubstr("denied: policy: deny head/*"));
}

TEST_F(HalftoneDumpAmp, DiffOfTwoPolicies) {
  const std::string a = Policy("a", "dtype bf16\n"),
                    b = Policy("b", "dtype: \"bf16\" deny: \"o\"\n");
  EXPECT_EQ(Dump("--diff " + a + " " + b).status, 2) << "two entries in a line";
  const std::string c = Policy("c", "dtype: \"bf16\"\ndeny: \"o\"\n");
  const Result run = Dump("--diff " + a + " " + c);
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("denied: policy: deny o"));
  EXPECT_EQ(Dump("--diff " + a + " " + a).status, 0);
  const Result folder = Dump("--diff " + a + " " + folder_.path());
  EXPECT_EQ(folder.status, 2);
  EXPECT_THAT(folder.err, HasSubstr(folder_.path() + ": is not a regular file"));
  const Result garbage = Dump("--diff " + a + " " + Policy("d", "dtype bf16\n\x01\x02"));
  EXPECT_THAT(garbage.err, HasSubstr("line 2: got '\\x01'; expected a field"));
}

TEST_F(HalftoneDumpAmp, OptionsThatDoNotGoTogether) {
  EXPECT_EQ(Dump("--why m --what-if deny:o").status, 2);
  EXPECT_EQ(Dump("--why m --format=json").status, 2);
  EXPECT_EQ(Start("tools/halftone_dump", folder_.Write("g.txt", kEntropy) + " --why m").status, 2);
  EXPECT_EQ(Dump("--diff a").status, 2);
}

}  // namespace
}  // namespace halftone::testing
