// halftone_dump --diff as a user starts it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "halftone/tests/programs/start.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

using ::testing::HasSubstr;

class HalftoneDumpDiff : public ::testing::Test {
 protected:
  Result Diff(const std::string& a, const std::string& b, const std::string& options = "") {
    return Start("tools/halftone_dump", "--diff " + folder_.Write("a.txt", a) + " " +
                                            folder_.Write("b.txt", b) + " " + options);
  }
  const TempDir folder_;
};

constexpr char kPlain[] =
    "graph @g(%x: f32[4,4]) {\n"
    "  %w = variable \"w\" : f32[4,4]\n"
    "  %h = matmul(%x, %w)\n"
    "  %r = relu(%h)\n"
    "  %n = neg(%x)\n"
    "  %s = softmax(%r) {axis=1}\n"
    "  return %s, n=%n\n"
    "}\n";

TEST_F(HalftoneDumpDiff, NoDifferences) {
  const Result run = Diff(kPlain, kPlain);
  EXPECT_EQ(run.status, 0) << run.err;
  EXPECT_EQ(run.out, "no differences\n");
  // Neither the graph's name, nor the place in the source, nor the order of independent nodes.
  const Result moved = Diff(kPlain,
                            "graph @other(%x: f32[4,4]) {\n"
                            "  %n = neg(%x) : f32[4,4] loc(\"model.cc\":7)\n"
                            "  %w = variable \"w\" : f32[4,4]\n"
                            "  %h = matmul(%x, %w)\n"
                            "  %r = relu(%h)\n"
                            "  %s = softmax(%r) {axis=1}\n"
                            "  return %s, n=%n\n"
                            "}\n");
  EXPECT_EQ(moved.status, 0) << moved.out;
}

TEST_F(HalftoneDumpDiff, CastsInsertedAndAnAttributeChanged) {
  const std::string low =
      "graph @g(%x: f32[4,4]) {\n"
      "  %w = variable \"w\" : f32[4,4]\n"
      "  %x1 = cast(%x) {to=bf16}\n"
      "  %w1 = cast(%w) {to=bf16}\n"
      "  %h = matmul(%x1, %w1)\n"
      "  %r = relu(%h)\n"
      "  %s = softmax(%r) {axis=0}\n"
      "  return %s\n"
      "}\n";
  const Result run = Diff(kPlain, low);
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_EQ(run.out,
            "nodes removed: 1\n"
            "  - %n = neg(%x) : f32[4,4]\n"
            "nodes added: 2\n"
            "  + %x1 = cast(%x) {to=bf16} : bf16[4,4]\n"
            "  + %w1 = cast(%w) {to=bf16} : bf16[4,4]\n"
            "dtypes changed: 3\n"
            "  ~ %h: f32[4,4] -> bf16[4,4]\n"
            "  ~ %r: f32[4,4] -> bf16[4,4]\n"
            "  ~ %s: f32[4,4] -> bf16[4,4]\n"
            "attributes changed: 1\n"
            "  ~ %s axis: 1 -> 0\n"
            "operands changed: 2\n"
            "  ~ %h operand 0: %x -> %x1\n"
            "  ~ %h operand 1: %w -> %w1\n"
            "graph outputs changed: 1\n"
            "  ~ output 1: n=%n -> none\n");
  const Result json = Diff(kPlain, low, "--format=json");
  EXPECT_EQ(json.status, 1) << json.err;
  EXPECT_THAT(json.out, HasSubstr("\"same\": false"));
  EXPECT_THAT(json.out, HasSubstr("{\n"
                                  "   \"kind\": \"attribute\",\n"
                                  "   \"node\": \"%s\",\n"
                                  "   \"what\": \"axis\",\n"
                                  "   \"from\": \"1\",\n"
                                  "   \"to\": \"0\"\n"
                                  "  }"));
}

// The cast of %x is %cast in one graph and %cast_1 in the other: the same node by what it computes.
TEST_F(HalftoneDumpDiff, FollowsANodeThatGotAnotherName) {
  const Result run = Diff(
      "graph @g(%x: f32[4], %y: f32[4]) {\n"
      "  %cast = cast(%x) {to=bf16}\n"
      "  %r = relu(%cast)\n"
      "  return %r\n"
      "}\n",
      "graph @g(%x: f32[4], %y: f32[4]) {\n"
      "  %cast = cast(%y) {to=bf16}\n"
      "  %cast_1 = cast(%x) {to=bf16}\n"
      "  %r = relu(%cast_1)\n"
      "  return %r, %cast\n"
      "}\n");
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_EQ(run.out,
            "nodes added: 1\n"
            "  + %cast = cast(%y) {to=bf16} : bf16[4]\n"
            "nodes renamed: 1\n"
            "  ~ %cast -> %cast_1\n"
            "graph outputs changed: 1\n"
            "  ~ output 1: none -> %cast\n");
}

// Neither names nor attributes agree; the operands do.
TEST_F(HalftoneDumpDiff, FollowsANodeByItsOperands) {
  const Result run =
      Diff("graph @g(%x: f32[4,4]) {\n  %a = softmax(%x) {axis=0} @\"m\"\n  return %a\n}\n",
           "graph @g(%x: f32[4,4]) {\n  %b = softmax(%x) {axis=1} @\"n\"\n  return %b\n}\n");
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_EQ(run.out,
            "attributes changed: 1\n"
            "  ~ %b axis: 0 -> 1\n"
            "nodes renamed: 1\n"
            "  ~ %a -> %b\n"
            "modules changed: 1\n"
            "  ~ %b: \"m\" -> \"n\"\n");
}

TEST_F(HalftoneDumpDiff, ShapesConstantsAndUnreadVariables) {
  const Result run = Diff(
      "graph @g(%x: f32[4]) {\n"
      "  variable \"old\" : f32[3]\n"
      "  %c = constant {value=dense<f32[2]>(1, 2)}\n"
      "  return %x, %c\n"
      "}\n",
      "graph @g(%x: f32[8]) {\n"
      "  variable \"old\" {kind=\"buffer\", trainable=false} : f32[3]\n"
      "  variable \"new\" : i32[]\n"
      "  %c = constant {value=dense<f32[2]>(1, 3)}\n"
      "  return %x, %c\n"
      "}\n");
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_EQ(run.out,
            "shapes or layouts changed: 1\n"
            "  ~ %x: f32[4] -> f32[8]\n"
            "attributes changed: 1\n"
            "  ~ %c value: f32[2] -> f32[2] with other values\n"
            "unread variables changed: 2\n"
            "  ~ \"old\": f32[3] parameter trainable constant(0) -> f32[3] buffer constant(0)\n"
            "  ~ \"new\": none -> i32[] parameter trainable constant(0)\n");
}

// Two renamed constants differ in one bit; the line of a large one is short.
TEST_F(HalftoneDumpDiff, ConstantsAreComparedByTheirBits) {
  const Result run = Diff(
      "graph @g(%x: f32[2]) {\n"
      "  %c = constant {value=dense<f32[2]>(0, 1)}\n"
      "  %d = constant {value=dense<f32[2]>(-0, 1)}\n"
      "  return %c, %d\n"
      "}\n",
      "graph @g(%x: f32[2]) {\n"
      "  %minus = constant {value=dense<f32[2]>(-0, 1)}\n"
      "  %plus = constant {value=dense<f32[2]>(0, 1)}\n"
      "  %large = constant {value=splat<f32[2000]>(7)}\n"
      "  return %plus, %minus\n"
      "}\n");
  EXPECT_EQ(run.status, 1) << run.err;
  EXPECT_THAT(run.out, HasSubstr("nodes added: 1\n  + %large = constant {value="));
  EXPECT_THAT(run.out, HasSubstr("nodes renamed: 2\n  ~ %d -> %minus\n  ~ %c -> %plus\n"));
  EXPECT_LT(run.out.size(), 300u);
}

// As diff has it: 2 is trouble.
TEST_F(HalftoneDumpDiff, TroubleIsTwo) {
  const std::string path = folder_.Write("a.txt", kPlain);
  const Result one = Start("tools/halftone_dump", "--diff " + path);
  EXPECT_EQ(one.status, 2);
  EXPECT_THAT(one.err, HasSubstr("--diff: expected two files, A B"));
  for (const std::string& pair : {path + " " + path + ".absent", path + ".absent " + path}) {
    const Result absent = Start("tools/halftone_dump", "--diff " + pair);
    EXPECT_EQ(absent.status, 2);
    EXPECT_THAT(absent.err, HasSubstr(path + ".absent"));
  }
  const Result broken = Diff(kPlain, "graph @broken(");
  EXPECT_EQ(broken.status, 2);
  EXPECT_THAT(broken.err, HasSubstr("b.txt: line 1"));
}

}  // namespace
}  // namespace halftone::testing
