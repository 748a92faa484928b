// Canonicalisation, cast clean-up, decomposition and layouts leave every bit of every result alone,
// on graphs nobody wrote by hand.
#include <gtest/gtest.h>

#include "halftone/graph/ir/text.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/pipeline.h"
#include "halftone/tests/support/graph_runner.h"
#include "halftone/tests/support/random_step.h"

namespace halftone::testing {
namespace {

constexpr uint64_t kGraphs = 1000;

class RandomSteps : public ::testing::TestWithParam<std::string> {
 protected:
  RandomSteps() {
    context_.target = *kernels::FindFixedTarget("cpu-avx512bf16");
    context_.evaluator = &evaluator_;
    options_.check_changed = true;
  }

  // Runs `manager` over a random graph and compares results. Counts graphs that changed.
  void Check(uint64_t seed, passes::PassManager& manager) {
    const auto graph = RandomStep(seed);
    const auto before = graph->Clone();
    const absl::Status status = manager.Run(*graph, context_);
    ASSERT_TRUE(status.ok()) << status << "\n" << before->ToString();
    changed_ += graph->Hash() != before->Hash() ? 1 : 0;
    const GraphFeeds feeds = RandomFeeds(*before, {}, seed);
    const auto expected = RunGraph(*before, feeds, evaluator_);
    const auto got = RunGraph(*graph, feeds, evaluator_);
    ASSERT_TRUE(expected.ok()) << expected.status();
    ASSERT_TRUE(got.ok()) << got.status();
    ASSERT_EQ(expected->outputs.size(), got->outputs.size());
    for (size_t i = 0; i < got->outputs.size(); ++i) {
      EXPECT_TRUE(BitEqual(expected->outputs[i], got->outputs[i]))
          << "seed " << seed << ", output " << i << "\n"
          << before->ToString() << graph->ToString();
    }
    ASSERT_EQ(expected->commits.size(), got->commits.size());
    for (const auto& [name, value] : expected->commits) {
      EXPECT_TRUE(BitEqual(value, got->commits.at(name))) << "seed " << seed << ", " << name;
    }
  }

  kernels::ReferenceEvaluator evaluator_;
  passes::PassContext context_;
  passes::PassManagerOptions options_;
  uint64_t changed_ = 0;
};

TEST_P(RandomSteps, KeepTheirResultsUnderOnePass) {
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    passes::PassManager manager(options_);
    auto pass = passes::MakePass(GetParam());
    ASSERT_TRUE(pass.ok()) << pass.status();
    manager.Add(*std::move(pass));
    Check(seed, manager);
    if (HasFatalFailure()) return;
  }
  // The generator has no losses and no composite ops.
  const bool never = GetParam() == "autodiff" || GetParam() == "decompose-unsupported";
  if (!never) {
    EXPECT_GT(changed_, kGraphs / 4) << "the graphs give the pass little to do";
  }
}

INSTANTIATE_TEST_SUITE_P(Exact, RandomSteps,
                         ::testing::Values("fold-constants", "simplify",
                                           "eliminate-common-subexpressions", "eliminate-dead-code",
                                           "autodiff", "decompose-unsupported", "clean-up-casts",
                                           "assign-layouts"),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) c = c == '-' ? '_' : c;
                           return name;
                         });

using WholePipeline = RandomSteps;

TEST_F(WholePipeline, KeepsResultsOfAGraphThatAsksForNothing) {
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    passes::PassManager manager(options_);
    passes::AddPipeline(manager);
    Check(5000 + seed, manager);
    if (HasFatalFailure()) return;
  }
}

// Running a pass on its own result finds nothing more to do.
TEST_F(WholePipeline, IsIdempotent) {
  for (uint64_t seed = 0; seed < kGraphs; ++seed) {
    const auto graph = RandomStep(10000 + seed);
    ASSERT_TRUE(passes::RunPipeline(*graph, context_, options_).ok());
    const std::string once = graph->ToString();
    ASSERT_TRUE(passes::RunPipeline(*graph, context_, options_).ok());
    EXPECT_EQ(graph->ToString(), once) << "seed " << seed;
  }
}

}  // namespace
}  // namespace halftone::testing
