// Every program of examples/amp does what its head says it does: each judges itself by its exit status.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "halftone/tests/programs/start.h"

namespace halftone::testing {
namespace {

std::vector<std::string> Recipes() {
  std::vector<std::string> names;
  for (const auto& file :
       std::filesystem::directory_iterator(HALFTONE_SOURCE_DIR "/examples/amp")) {
    if (file.path().extension() == ".cc") names.push_back(file.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class AmpRecipe : public ::testing::TestWithParam<std::string> {};

TEST_P(AmpRecipe, Holds) {
  const Result run = Start("examples/amp/" + GetParam(), "");
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_NE(run.out, "");
}

INSTANTIATE_TEST_SUITE_P(Programs, AmpRecipe, ::testing::ValuesIn(Recipes()),
                         [](const auto& info) { return info.param; });

TEST(AmpRecipeOptions, AScalerThatNeverChanges) {
  const Result run = Start("examples/amp/custom_graph", "--scaler=static");
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_TRUE(Has(run, "scale 2048;")) << run.output;
}

TEST(AmpRecipeOptions, APenaltyOnTheGradientInTheImages) {
  const Result run = Start("examples/amp/gradient_penalty", "--of=images");
  EXPECT_EQ(run.status, 0) << run.output;
}

TEST(AmpRecipeOptions, WrongOnes) {
  const Result run = Start("examples/amp/custom_graph", "--scaler=8");
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.err, "custom_graph: --scaler: expected dynamic or static\n");
  EXPECT_EQ(Start("examples/amp/gradient_penalty", "--of=loss").err,
            "gradient_penalty: --of: expected parameters or images\n");
  EXPECT_EQ(Start("examples/amp/typical", "more").status, 2);
}

}  // namespace
}  // namespace halftone::testing
