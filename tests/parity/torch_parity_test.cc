// mlp and fashion_cnn follow PyTorch for 50 f32 training steps from the same weights and data. The
// recorded losses come from benchmarks/peers/torch_parity.py; nothing of ours went into them.
#include <cmath>
#include <fstream>
#include <sstream>

#include "gtest/gtest.h"
#include "halftone/benchmarks/support/workloads.h"

namespace halftone::testing {
namespace {

std::vector<double> RecordedLosses(const std::string& workload) {
  std::ifstream file(Concat(HALFTONE_SOURCE_DIR, "/tests/parity/torch_losses.txt"));
  std::vector<double> losses;
  std::string line, name;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    size_t step = 0;
    double loss = 0;
    if (words >> name >> step >> loss && name == workload) {
      EXPECT_EQ(step, losses.size() + 1);
      losses.push_back(loss);
    }
  }
  return losses;
}

// Largest relative difference up to and including each step is what `check` sees.
std::vector<double> RelativeDifferences(const std::string& name) {
  const std::vector<double> expected = RecordedLosses(name);
  EXPECT_EQ(expected.size(), 50u);
  std::vector<double> differences;
  const auto workload = benchmarks::MakeWorkload(name);
  EXPECT_TRUE(workload.ok()) << workload.status();
  if (!workload.ok()) return {};
  EXPECT_TRUE((*workload)->SetHashWeights().ok());
  benchmarks::TrainingStep graph(**workload);
  for (double loss : expected) {
    auto out = graph((*workload)->data);
    EXPECT_TRUE(out.ok()) << out.status();
    if (!out.ok()) break;
    differences.push_back(std::abs((*out)[0].item() - loss) / std::abs(loss));
  }
  return differences;
}

TEST(TorchParity, MlpFollowsForFiftySteps) {
  const std::vector<double> d = RelativeDifferences("mlp");
  ASSERT_EQ(d.size(), 50u);
  EXPECT_LT(d.front(), 1e-6);
  EXPECT_LT(d.back(), 2e-6);
}

TEST(TorchParity, FashionCnnFollowsForFiftySteps) {
  const std::vector<double> d = RelativeDifferences("fashion_cnn");
  ASSERT_EQ(d.size(), 50u);
  EXPECT_LT(d.front(), 1e-6);
  EXPECT_LT(d.back(), 2e-5);
}

}  // namespace
}  // namespace halftone::testing
