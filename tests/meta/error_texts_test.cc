// Every error that a user can cause is in a test with its text.
#include "halftone/tests/meta/error_texts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace halftone::meta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct Exempt {
  const char* text;
  const char* why;
};

// Texts that no test can have. One that a test has, or no source, must go.
const Exempt kExempt[] = {
    {"zlib has no memory to read it", "of a few kilobytes"},
    {"cannot read", "reading a regular file fails only with the hardware"},
    {"became shorter while it was read", "by another process, within microseconds"},
    {"bytes as proto; expected at most", "needs a graph of 2 GiB"},
    {"line 1, column 1: the text has", "needs a text of 2 GiB"},
    {"build() raised an exception", "the exception itself is raised in its place"},
};

std::vector<std::string> Texts(const std::string& code) {
  std::vector<std::string> texts;
  for (const ErrorText& error : ErrorTexts({"core/a.cc", code})) texts.push_back(error.text);
  return texts;
}

TEST(ErrorTexts, EachIsInATest) {
  const std::vector<SourceFile> tree = ReadTree(HALFTONE_SOURCE_DIR);
  std::set<std::string> exempt, untested;
  for (const Exempt& e : kExempt) exempt.insert(e.text);
  std::vector<std::string> bad;
  for (const ErrorText& error : Untested(tree, TextOfTests(HALFTONE_SOURCE_DIR))) {
    untested.insert(error.text);
    if (exempt.count(error.text) != 0) continue;
    bad.push_back(error.path + ":" + std::to_string(error.line) + ": no test has \"" + error.text +
                  "\"");
  }
  EXPECT_THAT(bad, IsEmpty());
  EXPECT_EQ(exempt, untested) << "exemptions that are not needed";
  EXPECT_GT(Untested(tree, "").size(), 300u) << "the scan found too little";
}

TEST(ErrorTexts, OneThatNoTestHasIsSeen) {
  const std::string code = "NotFound(\"no such thing\");\nDataLoss(\"half of it is gone\");";
  const std::vector<SourceFile> files = {{"core/a.cc", code},
                                         {"kernels/cpu/ops/a.cc", code},
                                         {"kernels/cuda/ops/a.cc", code},
                                         {"kernels/cuda/runtime/backend.cc", code},
                                         {"tests/core/a_test.cc", code}};
  const auto untested = Untested(files, "EXPECT_EQ(Message(status), \"no such thing\")");
  ASSERT_EQ(untested.size(), 2u);
  EXPECT_EQ(untested[1].path, "kernels/cuda/runtime/backend.cc");
  EXPECT_EQ(untested[0].path, "core/a.cc");
  EXPECT_EQ(untested[0].line, 2);
  EXPECT_EQ(untested[0].text, "half of it is gone");
}

TEST(ErrorTexts, AreTheLongestLiteralOfACall) {
  EXPECT_THAT(Texts("return InvalidArgument(path, \": got \", n, \"; expected 1 or 2\");"),
              ElementsAre("expected 1 or 2"));
  EXPECT_THAT(Texts("DataLoss(p, \": damaged \"\n   \"data, \", \"cut short: \", n)"),
              ElementsAre("damaged data, cut short"));
  EXPECT_THAT(Texts("Fail(loc, InvalidArgument(\"two numbers\")); Fail(\"other text\");"),
              ElementsAre("two numbers", "other text"));
  EXPECT_THAT(Texts("NotFound(F(\"(\", ')', '\"'), \"no \\\"such\\\" file\")"),
              ElementsAre("no \\\"such\\\" file"));
  EXPECT_THAT(Texts("OutOfRange(1'000, \"out of it\")"), ElementsAre("out of it"));
}

TEST(ErrorTexts, OtherTextsAreNone) {
  EXPECT_THAT(Texts("// InvalidArgument(\"in a comment\")\nLog(\"InvalidArgument(1, 2)\");"),
              IsEmpty());
  EXPECT_THAT(Texts("Internal(\"our fault\"); IsNotFound(\"a long text\"); NotFound(message)"),
              IsEmpty());
  EXPECT_THAT(Texts("NotFound(name), Log(\"not an argument\")"), IsEmpty());
  EXPECT_THAT(Texts("auto s = R\"(InvalidArgument(\"in a literal\"))\";"), IsEmpty());
}

TEST(ErrorTexts, HaveTheLineOfTheirCall) {
  const auto errors =
      ErrorTexts({"core/a.cc", "R\"(\n\n)\"\nreturn\n  NotFound(\"no such file\");"});
  ASSERT_EQ(errors.size(), 1u);
  EXPECT_EQ(errors[0].path, "core/a.cc");
  EXPECT_EQ(errors[0].line, 5);
}

TEST(TextOfTests, JoinsLiterals) {
  EXPECT_EQ(Joined("F(\"no such \"\n  \"file\", \": \" , \"x\")"), "F(\"no such file: x\")");
  EXPECT_EQ(Joined("F(\"a \\\"b\\\"\", n, \"c\")"), "F(\"a \\\"b\\\"\", n, \"c\")");
  EXPECT_EQ(Joined("match=r\"build\\(\\) only\""), "match=r\"build() only\"");
  EXPECT_EQ(Joined("\"a\""), "\"a\"");
}

}  // namespace
}  // namespace halftone::meta
