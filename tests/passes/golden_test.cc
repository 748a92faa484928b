// Runs every file under tests/passes/golden.
#include "halftone/tests/support/golden.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "halftone/passes/pipeline.h"

namespace halftone::testing {
namespace {

class Golden : public ::testing::TestWithParam<std::string> {};

TEST_P(Golden, IsAsExpected) {
  const auto golden = ReadGolden(GetParam());
  ASSERT_TRUE(golden.ok()) << golden.status();
  CheckGolden(*golden);
}

INSTANTIATE_TEST_SUITE_P(Files, Golden, ::testing::ValuesIn(GoldenFiles(HALFTONE_SOURCE_DIR)),
                         [](const ::testing::TestParamInfo<std::string>& info) {
                           const auto golden = ReadGolden(info.param);
                           std::string name = golden.ok() ? golden->pass + "__" + golden->name
                                                          : Concat("unreadable_", info.index);
                           std::replace_if(
                               name.begin(), name.end(), [](char c) { return !std::isalnum(c); },
                               '_');
                           return name;
                         });

// verify-amp-dtypes changes nothing; its files are twins or errors.
TEST(GoldenFiles, EveryPassHasOneThatFiresAndOneThatDoesNot) {
  std::set<std::string> fires;
  std::set<std::string> does_not;
  for (const std::string& path : GoldenFiles(HALFTONE_SOURCE_DIR)) {
    const auto golden = ReadGolden(path);
    ASSERT_TRUE(golden.ok()) << golden.status();
    (golden->fires ? fires : does_not).insert(golden->pass);
  }
  for (const std::string& pass : passes::PassNames()) {
    EXPECT_TRUE(fires.contains(pass)) << pass << " has no golden file";
    EXPECT_TRUE(does_not.contains(pass)) << pass << " has no *_does_not_fire.txt";
  }
}

}  // namespace
}  // namespace halftone::testing
