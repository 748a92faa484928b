// amp::Policy: file form, precedence, and entries that match nothing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "halftone/graph/ir/builder.h"
#include "halftone/passes/amp/policy.h"
#include "halftone/passes/amp/policy_match.h"
#include "halftone/tests/passes/amp_test_util.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using amp::GlobMatches;
using amp::Policy;
using ir::AmpClass;

TEST(AmpPolicy, FileFormIsAFixedPoint) {
  const std::string text =
      "version: 1\ndtype: \"f16\"\nlevel: ONLY_MATMUL\nallow: \"exp\"\n"
      "allow: \"conv2d[groups=1]\"\ninfer: \"log\"\nclear: \"sqrt\"\ndeny: \"head/*\"\n"
      "low_outputs: true\nno_trim: true\n";
  absl::StatusOr<Policy> policy = Policy::Parse(text);
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_EQ(policy->dtype, DType::kF16);
  EXPECT_THAT(policy->allow, ::testing::ElementsAre("exp", "conv2d[groups=1]"));
  EXPECT_EQ(policy->ToString(), text);
}

TEST(AmpPolicy, AllTheWaysToWriteAnEntry) {
  absl::StatusOr<Policy> policy = Policy::Parse(
      "deny head/*  # two words\ndeny: 'a\\'b'\nallow: [\"exp\",  # a list\n \"conv2d[groups=1]\"]\n"
      "allow: []\ndeny: \"head/*\", \nlevel: conservative\ntrim: false");
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_THAT(policy->deny, ::testing::ElementsAre("head/*", "a'b"));
  EXPECT_THAT(policy->allow, ::testing::ElementsAre("exp", "conv2d[groups=1]"));
  EXPECT_EQ(policy->level, amp::Level::kConservative);
  EXPECT_FALSE(policy->trim);
  EXPECT_EQ(Policy::Parse(policy->ToString()).value_or(Policy()), *policy);
}

TEST(AmpPolicy, CommentsAndAutoAreUnderstood) {
  absl::StatusOr<Policy> policy = Policy::Parse("# mine\n\n  dtype auto  # the device's\ndeny a\n");
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_FALSE(policy->dtype.has_value());
  EXPECT_THAT(policy->deny, ::testing::ElementsAre("a"));
}

TEST(AmpPolicy, FileErrorsNameTheLine) {
  const std::pair<const char*, const char*> cases[] = {
      {"dtype f32\n", "line 1: dtype is \"f32\"; expected f16, bf16, f8 or auto"},
      {"\ndeny\n", "line 2: \"deny\" has no value"},
      {"deny a b\n", "line 1: \"b\" after the value; expected one entry a line"},
      {"trim yes\n", "line 1: trim is \"yes\"; expected true or false"},
      {"forbid a\n",
       "line 1: \"forbid\" is unknown; "
       "expected dtype, level, allow, infer, clear, deny, low_outputs or trim"},
      {"version: 2\n", "line 1: version is \"2\"; expected 1"},
      {"level: all\n",
       "line 1: level is \"all\"; expected balanced, conservative, only_matmul or force"},
      {"deny: \"a\n", "line 1: a string without its end"},
      {"deny: [\"a\"\n\"b\"]\n", "line 2: expected ',' or ']' in the list of deny"},
      {"deny: [a]\n", "line 1: expected a string in quotes"},
      {"deny: [\"a\",\n\n", "line 3: expected a string in quotes"},
      {"\n\x01\x02", "line 2: got '\\x01'; expected a field"},
      {"allow exp\n\ndeny: \"exp\"\n", "line 3: deny \"exp\": line 1 has it under allow"},
      {"deny softmax[axes=1]\n",
       "line 1: amp policy: \"softmax[axes=1]\": softmax has no attribute \"axes\""},
      {"deny sotfmax[axis=1]\n",
       "line 1: amp policy: \"sotfmax[axis=1]\": no op is called \"sotfmax\""},
      {"deny: \"\"\n", "line 1: an entry of deny has 0 bytes; expected 1 to 256"}};
  for (const auto& [text, message] : cases) {
    absl::Status status = Policy::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(status), message);
  }
}

TEST(AmpPolicy, ReadsFiles) {
  const std::string path = ::testing::TempDir() + "/policy_" + std::to_string(getpid()) + ".txt";
  std::ofstream(path) << "deny head/*\n";
  absl::StatusOr<Policy> policy = Policy::ReadFile(path);
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_THAT(policy->deny, ::testing::ElementsAre("head/*"));
  std::ofstream(path) << "deny\n";
  EXPECT_EQ(Message(Policy::ReadFile(path).status()), path + ": line 1: \"deny\" has no value");
  EXPECT_EQ(Policy::ReadFile(path + ".absent").status().code(), absl::StatusCode::kNotFound);
  ASSERT_TRUE(policy->WriteFile(path).ok());
  EXPECT_EQ(Policy::ReadFile(path).value_or(Policy()), *policy);
}

TEST(AmpPolicy, OnlyFilesAreRead) {
  const testing::TempDir dir;
  EXPECT_EQ(Message(Policy::ReadFile(dir.path()).status()), dir.path() + ": is not a regular file");
  ASSERT_EQ(mkfifo(dir.Path("pipe").c_str(), 0600), 0);  // nobody will ever write into it
  EXPECT_EQ(Message(Policy::ReadFile(dir.Path("pipe")).status()),
            dir.Path("pipe") + ": is not a regular file");
  const std::string large = dir.Write("large", std::string((1 << 20) + 1, '#'));
  EXPECT_EQ(Message(Policy::ReadFile(large).status()),
            large + ": has 1048577 bytes; expected at most 1048576");
}

TEST(AmpPolicy, MarkerKeepsEverything) {
  Policy policy;
  policy.dtype = DType::kBF16;
  policy.deny = {"softmax"};
  policy.low_outputs = true;
  policy.level = amp::Level::kForce;
  ir::Graph graph;
  ir::Builder b(&graph);
  ir::Node* marker = b.Root("amp", {}, policy.ToMarker());
  ASSERT_NE(marker, nullptr) << b.status();
  EXPECT_EQ(Policy::FromMarker(*marker), policy);
}

TEST(AmpGlob, Patterns) {
  EXPECT_TRUE(GlobMatches("head/*", "head/fc/matmul_1"));
  EXPECT_FALSE(GlobMatches("head/*", "ahead/fc"));
  EXPECT_TRUE(GlobMatches("*/fc?/*", "enc/fc1/add"));
  EXPECT_FALSE(GlobMatches("*/fc?/*", "enc/fc12/add"));
  EXPECT_TRUE(GlobMatches("*a*b*", "xxaxxbxxabxx"));
  EXPECT_FALSE(GlobMatches("a*b", "abc"));
  EXPECT_TRUE(GlobMatches("*", ""));
  EXPECT_FALSE(GlobMatches("", "a"));
}

// Two tanh nodes, one of them in a scope with a request.
std::unique_ptr<ir::Graph> Example() {
  auto graph = ParseGraph(R"(graph @g(%x: f32[4,4]) {
    %t = tanh(%x) : f32[4,4] @"head"
    %u = tanh(%t) : f32[4,4] @"body"
    %s = softmax(%u) {axis=1} : f32[4,4] @"body"
    return %s
  })");
  graph->FindNode("u")->amp_request = -1;
  return graph;
}

AmpClass ClassOf(const Policy& policy, const char* node) {
  auto graph = Example();
  auto classes = amp::ClassifyNodes(*graph, policy, DType::kF16);
  EXPECT_TRUE(classes.ok()) << classes.status();
  return (*classes)[graph->FindNode(node)->id()].amp_class;
}

TEST(AmpPrecedence, TraitThenOpTypeThenConditionThenRequestThenPattern) {
  Policy policy;
  EXPECT_EQ(ClassOf(policy, "t"), AmpClass::kInfer);
  EXPECT_EQ(ClassOf(policy, "u"), AmpClass::kDeny) << "the node's request";
  EXPECT_EQ(ClassOf(policy, "s"), AmpClass::kInfer);

  policy.allow = {"tanh", "softmax"};
  EXPECT_EQ(ClassOf(policy, "t"), AmpClass::kAllow);
  EXPECT_EQ(ClassOf(policy, "u"), AmpClass::kDeny) << "the request is stronger than an op type";

  policy.clear = {"softmax[axis=1]"};
  EXPECT_EQ(ClassOf(policy, "s"), AmpClass::kClear) << "a condition is stronger than the type";
  policy.clear = {"softmax[axis=0]"};
  EXPECT_EQ(ClassOf(policy, "s"), AmpClass::kAllow);

  policy.allow = {"body/*"};
  EXPECT_EQ(ClassOf(policy, "u"), AmpClass::kAllow) << "a pattern is stronger than the request";
  policy.deny = {"body/*"};
  EXPECT_EQ(ClassOf(policy, "u"), AmpClass::kDeny) << "of equals the more careful";
  policy.allow = {"body/u*"};
  EXPECT_EQ(ClassOf(policy, "u"), AmpClass::kAllow) << "the longer pattern";
}

TEST(AmpPrecedence, AnOpTypeWithoutNodesIsFine) {
  Policy policy;
  policy.deny = {"conv2d"};
  EXPECT_EQ(ClassOf(policy, "t"), AmpClass::kInfer);
}

TEST(AmpPrecedence, F40EntriesThatMatchNothingAreNoted) {
  auto graph = Example();
  auto message = [&](const Policy& policy) {
    std::map<std::string, std::string> unmatched;
    EXPECT_TRUE(amp::ClassifyNodes(*graph, policy, DType::kF16, &unmatched).ok());
    EXPECT_EQ(unmatched.size(), 1u);
    return unmatched.empty() ? "" : unmatched.begin()->second;
  };
  Policy policy;
  policy.deny = {"haed/*"};
  EXPECT_THAT(message(policy),
              ::testing::AllOf(::testing::StartsWith("amp policy: deny \"haed/*\" matches no "
                                                     "node and is no op; nearest: "),
                               ::testing::HasSubstr("head/t")));
  policy.deny = {"sotfmax"};
  EXPECT_THAT(message(policy), ::testing::HasSubstr("softmax"));
}

TEST(AmpPrecedence, ConditionsThatNoNodeCanMeetAreErrors) {
  auto graph = Example();
  const auto message = [&](const Policy& policy) {
    const absl::Status status = amp::ClassifyNodes(*graph, policy, DType::kF16).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return Message(status);
  };
  Policy policy;
  policy.deny = {"softmax[axes=1]"};
  EXPECT_EQ(message(policy), "amp policy: \"softmax[axes=1]\": softmax has no attribute \"axes\"");
  policy.deny = {"softmax[axis]"};
  EXPECT_EQ(message(policy), "amp policy: \"softmax[axis]\"; expected op[attribute=value]");
}

TEST(AmpLevel, WhatBecomesOfNodesThatNobodyNames) {
  const char* body = R"(
    %m = matmul(%x, %w)
    %t = tanh(%m)
    %r = relu(%t)
    %n = matmul(%r, %v)
    %q = relu(%n)
    %o = matmul(%q, %v)
    %e = exp(%o)
    return %e)";
  const auto dtypes = [&](const std::string& amp) {
    AmpRun run = RunAmp(AmpText("dtype=f16, " + amp, body));
    EXPECT_TRUE(run.status.ok()) << run.status;
    std::string text;
    for (const char* node : {"m", "t", "r", "n", "q", "o", "e"}) {
      if (run.dtype(node) == "f16") text += node;
    }
    return text;
  };
  EXPECT_EQ(dtypes("level=\"balanced\""), "mtrnqo");
  EXPECT_EQ(dtypes("level=\"conservative\""), "mrnqo") << "%r moves values";
  EXPECT_EQ(dtypes("level=\"only_matmul\""), "mno");
  EXPECT_EQ(dtypes("level=\"force\""), "mtrnqoe");
  EXPECT_EQ(dtypes("level=\"only_matmul\", infer=[\"t\", \"r\"]"), "mtrno")
      << "an entry is stronger";
  EXPECT_EQ(dtypes("level=\"force\", deny=[\"exp\"]"), "mtrnqo");
}

TEST(AmpLevel, ForceLeavesTheLoss) {
  AmpRun run = RunAmp(AmpText("dtype=f16, level=\"force\"", R"(
    %m = matmul(%x, %w)
    %s = sum(%m) {axes=[]}
    backward(%s))"));
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.reason("s"), "f32: denied: it is the loss");
  EXPECT_EQ(run.dtype("m"), "f16");
}

TEST(AmpOpLists, AsMxnetHasThem) {
  const auto policy = Policy::FromLists(
      {.target_dtype_ops = {"tanh"},
       .fp32_ops = {"softmax"},
       .conditional_fp32_ops = {{"leaky_relu", "negative_slope", {"0.25", "0.5"}}},
       .excluded_names = {"head/fc"}},
      DType::kF16);
  ASSERT_TRUE(policy.ok()) << policy.status();
  EXPECT_THAT(policy->allow, ::testing::ElementsAre("tanh"));
  EXPECT_THAT(policy->deny, ::testing::ElementsAre("softmax", "leaky_relu[negative_slope=0.25]",
                                                   "leaky_relu[negative_slope=0.5]", "head/fc"));
  const auto message = [](const amp::OpLists& lists) {
    return Message(Policy::FromLists(lists).status());
  };
  EXPECT_EQ(message({.target_dtype_ops = {"exp"}, .fp32_ops = {"exp"}}),
            "amp policy: \"exp\" is in target_dtype_ops and in fp32_ops");
  EXPECT_EQ(message({.fp32_ops = {"Convolution"}}),
            "amp policy: fp32_ops: no op is called \"Convolution\"");
  EXPECT_EQ(message({.conditional_fp32_ops = {{"softmax", "axes", {"1"}}}}),
            "amp policy: \"softmax[axes=1]\": softmax has no attribute \"axes\"");
}

TEST(AmpUserWish, DeniedByRequestSpreadsAndAllowedIsASeed) {
  auto graph = ParseGraph(AmpText("dtype=f16", R"(
    %m = matmul(%x, %w)
    %t = tanh(%m)
    %n = matmul(%t, %v)
    %e = exp(%n)
    return %e)"));
  graph->FindNode("n")->amp_request = -1;
  graph->FindNode("e")->amp_request = 1;
  AmpRun run = RunAmp(std::move(graph));
  ASSERT_TRUE(run.status.ok()) << run.status;
  EXPECT_EQ(run.reason("n"), "f32: denied: the user keeps it f32");
  EXPECT_EQ(run.reason("e"), "f16: allowed: the user allows it");
}

}  // namespace
}  // namespace halftone::testing
