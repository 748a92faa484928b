// What mixed precision makes of values that all have ordinary sizes: finite, and as near to f32 as
// the roundings of its own nodes add up to. And no rounding happens where a reader enlarges it.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/graph/ir/builder.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/trim_amp_islands.h"
#include "halftone/passes/amp/value_ranges.h"
#include "halftone/tests/passes/amp_test_util.h"
#include "halftone/tests/passes/rounding_bound.h"
#include "halftone/tests/support/random_graph.h"

namespace halftone::testing {
namespace {

constexpr uint64_t kRandomGraphs = 2000;

std::unique_ptr<ir::Graph> FunctionsOf(uint64_t seed) {
  return RandomGraph(seed, {.steps = 24, .casts = false, .state = false, .functions = true});
}

AmpRun LoweredTo(const ir::Graph& f32, DType low) {
  auto graph = f32.Clone();
  ir::Builder b(graph.get());
  amp::Policy policy;
  policy.dtype = low;
  HT_CHECK(b.Root("amp", {}, policy.ToMarker()) != nullptr, "the marker is well formed");
  AmpRun run = RunAmp(std::move(graph));
  EXPECT_TRUE(run.status.ok()) << run.status;
  EXPECT_TRUE(RunPass(*passes::MakeTrimAmpIslands(), &run).ok());
  return run;
}

bool OrdinarySizes(const NodeValues& values) {
  for (const auto& [name, outputs] : values) {
    for (const Tensor& t : outputs) {
      for (int64_t i = 0; i < t.num_elements(); ++i) {
        const double x = std::abs(t.at(i));
        if (x != 0 && !(x >= 1e-3 && x <= 1e3)) return false;
      }
    }
  }
  return true;
}

class AmpRounding : public ::testing::TestWithParam<DType> {};

TEST_P(AmpRounding, ResultsOfOrdinarySizesAreAsNearAsRoundingsAddUpTo) {
  const ir::Evaluator& evaluator = kernels::ReferenceEvaluator();
  int ordinary = 0, low = 0, bounded = 0, outputs = 0;
  for (uint64_t seed = 0; seed < kRandomGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const auto f32 = FunctionsOf(seed);
    const GraphFeeds feeds = RandomFeeds(*f32, {.lo = -1, .hi = 1}, seed);
    const NodeValues values = AllValues(*f32, feeds, evaluator);
    if (!OrdinarySizes(values)) continue;
    ++ordinary;
    const AmpRun run = LoweredTo(*f32, GetParam());
    low += !run.casts().empty();
    const auto got = RunGraph(*run.graph, feeds, evaluator);
    ASSERT_TRUE(got.ok()) << got.status();
    const NodeValues bounds = RoundingBounds(*run.graph, *f32, values, evaluator);
    for (size_t o = 0; o < f32->outputs().size(); ++o) {
      const ir::Value was = f32->outputs()[o].value, is = run.graph->outputs()[o].value;
      const Tensor &want = values.at(was.node->name())[0], &bound = bounds.at(is.node->name())[0];
      if (!IsFloat(want.dtype())) continue;
      for (int64_t i = 0; i < want.num_elements(); ++i) {
        ++outputs;
        const double b = bound.at(i), x = got->outputs[o].at(i);
        if (!std::isfinite(b)) continue;
        ++bounded;
        ASSERT_TRUE(std::isfinite(x)) << "output " << o << " element " << i;
        ASSERT_LE(std::abs(x - want.at(i)), 1.001 * b)
            << "output " << o << " element " << i << ": " << want.at(i) << "\n"
            << run.graph->ToString();
      }
    }
  }
  EXPECT_GT(ordinary, 100) << "too few graphs to say anything";
  EXPECT_GT(low, ordinary / 4) << "too few of them have something to lower";
  EXPECT_GT(bounded, outputs * 0.95);
}

// Of what a node's record calls magnified nothing was rounded, but by an allowed op.
TEST_P(AmpRounding, WhatAReaderEnlargesIsNotRounded) {
  int magnifying = 0;
  for (uint64_t seed = 0; seed < kRandomGraphs; ++seed) {
    SCOPED_TRACE(seed);
    const AmpRun run = LoweredTo(*FunctionsOf(seed), GetParam());
    const passes::ValueRanges ranges(*run.graph);
    for (const auto& node : run.graph->nodes()) {
      if (!node->op().amp.magnifies) continue;
      const auto magnified = node->op().amp.magnifies(*node, GetParam(), ranges.OfInputs(*node));
      if (!magnified) continue;
      ++magnifying;
      EXPECT_EQ(node->output_type().dtype, DType::kF32) << node->name();
      for (int port : magnified->inputs) {
        const ir::Node& maker = *passes::LookThroughAmpCasts(node->input(port)).node;
        const bool low = IsLow(maker.output_type().dtype);
        EXPECT_TRUE(!low || (maker.amp.amp_class == ir::AmpClass::kAllow && !magnified->pole))
            << node->name() << " reads " << maker.name();
      }
    }
  }
  EXPECT_GT(magnifying, 1000);
}

INSTANTIATE_TEST_SUITE_P(LowTypes, AmpRounding, ::testing::Values(DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

}  // namespace
}  // namespace halftone::testing
