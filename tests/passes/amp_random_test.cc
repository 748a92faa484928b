// Properties of mixed precision that hold for every graph, on graphs nobody wrote by hand.
#include <gtest/gtest.h>

#include "halftone/graph/ir/builder.h"
#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/passes/amp/trim_amp_islands.h"
#include "halftone/passes/amp/verify_amp_dtypes.h"
#include "halftone/tests/passes/amp_test_util.h"
#include "halftone/tests/support/random_step.h"

namespace halftone::testing {
namespace {

std::unique_ptr<ir::Graph> WithMarker(uint64_t seed, DType low) {
  auto graph = RandomStep(seed, {.steps = 40});
  ir::Builder b(graph.get());
  amp::Policy policy;
  policy.dtype = low;
  HT_CHECK(b.Root("amp", {}, policy.ToMarker()) != nullptr, "the marker is well formed");
  return graph;
}

// Decision and reason of every node, by name.
std::map<std::string, std::string> Decisions(const ir::Graph& graph) {
  std::map<std::string, std::string> decisions;
  for (const auto& node : graph.nodes()) {
    if (node->amp.decided) decisions[node->name()] = node->amp.reason;
  }
  return decisions;
}

class AmpRandom : public ::testing::TestWithParam<DType> {};

TEST_P(AmpRandom, IsIdempotentOrderIndependentAndVerified) {
  int changed = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const auto original = WithMarker(seed, GetParam());
    AmpRun run = RunAmp(original->Clone());
    ASSERT_TRUE(run.status.ok()) << run.status << original->ToString();
    changed += !run.casts().empty();

    const uint64_t once = run.graph->Hash();
    absl::StatusOr<bool> again = RunPass(*passes::MakeInsertAmpCasts(), &run);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_FALSE(*again);
    EXPECT_EQ(run.graph->Hash(), once);

    AmpRun shuffled = RunAmp(ShuffleNodes(*original, seed + 1));
    ASSERT_TRUE(shuffled.status.ok()) << shuffled.status;
    EXPECT_EQ(Decisions(*shuffled.graph), Decisions(*run.graph));
    EXPECT_EQ(shuffled.casts(), run.casts());

    ASSERT_TRUE(RunPass(*passes::MakeTrimAmpIslands(), &run).ok());
    EXPECT_TRUE(passes::VerifyAmpDTypes(*run.graph).ok());
    ASSERT_TRUE(RunPass(*passes::MakeTrimAmpIslands(), &shuffled).ok());
    EXPECT_EQ(Decisions(*shuffled.graph), Decisions(*run.graph));
  }
  EXPECT_GT(changed, 300) << "too few graphs have something to lower";
}

TEST_P(AmpRandom, KeepsTheTypesOfOutputsAndOfWhatIsNoFloat) {
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(seed);
    const auto original = WithMarker(seed, GetParam());
    AmpRun run = RunAmp(original->Clone());
    ASSERT_TRUE(run.status.ok()) << run.status;
    for (size_t i = 0; i < original->outputs().size(); ++i) {
      EXPECT_EQ(run.graph->outputs()[i].value.type(), original->outputs()[i].value.type());
    }
    for (const auto& before : original->nodes()) {
      const ir::Node& after = run.node(before->name());
      for (int i = 0; i < before->num_outputs(); ++i) {
        if (before->output_type(i).dtype == DType::kF32) continue;
        EXPECT_EQ(after.output_type(i), before->output_type(i)) << before->name();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(LowTypes, AmpRandom, ::testing::Values(DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace halftone::testing
