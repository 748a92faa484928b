#include "halftone/core/printable.h"

#include <gtest/gtest.h>

namespace halftone {
namespace {

TEST(Printable, F71EscapesWhatMovesTheCursor) {
  EXPECT_EQ(Printable("fc1.weight"), "fc1.weight");
  EXPECT_EQ(Printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(Printable(std::string("nul\0del\x7f", 8)), "nul\\x00del\\x7f");
  EXPECT_EQ(Printable("one\ntwo\tthree\r"), "one\\x0atwo\\x09three\\x0d");
  EXPECT_EQ(Printable("one\ntwo\tthree\r", true), "one\ntwo\tthree\\x0d");
}

TEST(Printable, Utf8Stays) {
  EXPECT_EQ(Printable("gr\u00fc\u00dfe \u4e16"), "gr\u00fc\u00dfe \u4e16");
  EXPECT_EQ(Printable("\u009b2J"), "\\xc2\\x9b2J") << "the control sequence introducer";
  EXPECT_EQ(Printable("\u00a0"), "\u00a0") << "just behind the control characters";
  EXPECT_EQ(Printable("\xff\xc2"), "\xff\xc2") << "not UTF-8, and no control byte";
}

}  // namespace
}  // namespace halftone
