// docs/guide/coming_from.md promises people from other frameworks what they know. Each row of its
// tables with a column "held by" names there what keeps the promise: a link, which other rules
// follow, or tests, which have to exist.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "halftone/tests/meta/tree_rules.h"

namespace halftone::meta {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// "Suite.Name" of TEST, TEST_F and TEST_P, and the functions that pytest runs.
std::set<std::string> TestsIn(const SourceFile& file) {
  static const std::regex cpp("TEST(?:_F|_P)?\\((\\w+),\\s*(\\w+)\\)");
  static const std::regex python("\ndef (test_\\w+)\\(");
  std::set<std::string> tests;
  for (std::sregex_iterator it(file.text.begin(), file.text.end(), cpp), end; it != end; ++it) {
    tests.insert((*it)[1].str() + "." + (*it)[2].str());
  }
  for (std::sregex_iterator it(file.text.begin(), file.text.end(), python), end; it != end; ++it) {
    tests.insert((*it)[1]);
  }
  return tests;
}

// The cells of a row, cut at each '|' that no '\' stands before; none of another line.
std::vector<std::string> Cells(const std::string& line) {
  std::vector<std::string> cells;
  if (line.empty() || line.front() != '|') return cells;
  std::string cell;
  for (size_t i = 1; i < line.size(); ++i) {
    if (line[i] == '|' && line[i - 1] != '\\') {
      cells.push_back(cell);
      cell.clear();
    } else {
      cell += line[i];
    }
  }
  return cells;
}

struct Row {
  int line = 0;
  bool has_link = false;
  std::vector<std::string> tests;  // what stands in backticks
};

// The rows of the tables whose last column is "held by".
std::vector<Row> HeldRows(const std::string& text) {
  static const std::regex code("`([^`]+)`");
  std::vector<Row> rows;
  std::istringstream lines(text);
  std::string line;
  bool in_table = false;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::vector<std::string> cells = Cells(line);
    if (cells.empty()) {
      in_table = false;
      continue;
    }
    const std::string& last = cells.back();
    if (last == " held by ") {
      in_table = true;
    } else if (in_table && last.rfind(" ---", 0) != 0) {
      Row row{number, last.find("](") != std::string::npos, {}};
      for (std::sregex_iterator it(last.begin(), last.end(), code), end; it != end; ++it) {
        row.tests.push_back((*it)[1]);
      }
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::vector<std::string> Broken(const std::string& text, const std::set<std::string>& tests) {
  std::vector<std::string> broken;
  for (const Row& row : HeldRows(text)) {
    const std::string where = std::to_string(row.line) + ": ";
    if (!row.has_link && row.tests.empty()) broken.push_back(where + "nothing holds the row");
    for (const std::string& test : row.tests) {
      if (!tests.contains(test)) broken.push_back(where + "no test is called " + test);
    }
  }
  return broken;
}

TEST(ComingFrom, EachRowIsHeldByATestOrAProgram) {
  std::set<std::string> tests;
  std::string page;
  for (const SourceFile& file : ReadTree(HALFTONE_SOURCE_DIR)) {
    if (file.path.rfind("tests/", 0) == 0) tests.merge(TestsIn(file));
    if (file.path == "docs/guide/coming_from.md") page = file.text;
  }
  EXPECT_THAT(Broken(page, tests), IsEmpty());
  EXPECT_GT(HeldRows(page).size(), 60u);
  for (const char* framework :
       {"PyTorch", "OneFlow", "MXNet", "MMEngine", "MMCV", "TensorFlow", "Paddle", "Different"}) {
    EXPECT_NE(page.find(std::string("\n## ") + framework), std::string::npos) << framework;
  }
}

TEST(ComingFrom, SeesWhatIsMissing) {
  const std::string page =
      "| A | B |\n| --- | --- |\n| a | b |\n\n"
      "| A | B | held by |\n| --- | --- | --- |\n"
      "| `x\\|y` | b | [typical](typical.cc) |\n"
      "| a | b | `Suite.Name`, `test_it` |\n"
      "| a | b | `Suite.Other` |\n"
      "| a | b | later |\n";
  EXPECT_THAT(Broken(page, {"Suite.Name", "test_it"}),
              ElementsAre("9: no test is called Suite.Other", "10: nothing holds the row"));
  EXPECT_THAT(TestsIn({"a", "TEST(A, B) {\nTEST_F(C,\n       D) {\n\ndef test_e() -> None:\n"}),
              ElementsAre("A.B", "C.D", "test_e"));
}

}  // namespace
}  // namespace halftone::meta
