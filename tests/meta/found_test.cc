// Inputs on which Halftone once fell short are numbered; the tests that hold them carry the number
// in their names (F07 in C++, test_f07_... in Python), so that none is lost when tests are moved.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "halftone/tests/meta/tree_rules.h"

namespace halftone::meta {
namespace {

constexpr int kLast = 71;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// The numbers in names of tests: "F07" and "_f07_".
std::set<int> Numbers(const std::string& text) {
  std::set<int> numbers;
  for (size_t i = 0; i + 3 <= text.size(); ++i) {
    if (!IsDigit(text[i + 1]) || !IsDigit(text[i + 2])) continue;
    if (i + 3 < text.size() && IsDigit(text[i + 3])) continue;
    const char before = i == 0 ? ' ' : text[i - 1];
    const bool cpp = text[i] == 'F' && (before == ' ' || before == '(' || before == '_' ||
                                        before == '.' || (i >= 3 && text[i - 3] == 'F'));
    const bool python =
        text[i] == 'f' && before == '_' && i + 3 < text.size() && text[i + 3] == '_';
    if (cpp || python) numbers.insert((text[i + 1] - '0') * 10 + (text[i + 2] - '0'));
  }
  return numbers;
}

TEST(Found, EachHasATest) {
  std::set<int> tested;
  for (const SourceFile& file : ReadTree(HALFTONE_SOURCE_DIR)) {
    if (file.path.rfind("tests/", 0) == 0 && file.path.rfind("tests/meta/", 0) != 0) {
      tested.merge(Numbers(file.text));
    }
  }
  for (int i = 1; i <= kLast; ++i) {
    EXPECT_TRUE(tested.contains(i)) << "F" << i << " has no test";
  }
}

TEST(Found, NumbersInNames) {
  EXPECT_THAT(Numbers("TEST(Clip, F01OverGroups) TEST_F(A, F22F53Norms)"),
              ::testing::ElementsAre(1, 22, 53));
  EXPECT_THAT(Numbers("def test_f07_two_plug_ins() -> None:"), ::testing::ElementsAre(7));
  EXPECT_THAT(Numbers("DType::kF16 0x1F80 f32[2] \\xF01 F160"), ::testing::IsEmpty());
}

}  // namespace
}  // namespace halftone::meta
