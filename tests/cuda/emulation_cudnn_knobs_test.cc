// Which settings of an engine are tried, and in which order: on the emulated library, which builds plans at once.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "halftone/kernels/cuda/cudnn/conv_graph.h"
#include "halftone/kernels/cuda/cudnn/knob_search.h"
#include "halftone/tests/cuda/cudnn_graphs.h"

namespace halftone::testing {
namespace {

using cuda::CudnnChoice;
using cuda::CudnnKnobSearch;
using cuda::CudnnPlan;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

const cuda::CudnnTarget kSearched{nullptr, &TestDevice()};

// Of the engine that makes f32 weight gradients of 16-bit operands, without a setting.
CudnnPlan DefaultPlan() {
  cuda::CudnnConv conv;
  conv.product = cuda::ConvProduct::kGradWeight;
  conv.x = {CUDNN_DATA_HALF, {1, 8, 5, 6}, {240, 1, 48, 8}};
  conv.w = {CUDNN_DATA_FLOAT, {16, 8, 3, 3}, {72, 1, 24, 8}};
  conv.y = {CUDNN_DATA_HALF, {1, 16, 3, 4}, {192, 1, 64, 16}};
  conv.stride = conv.dilation = {1, 1};
  conv.padding = {0, 0};
  const auto graph = cuda::CudnnConvGraph::Make(conv, kSearched);
  HT_CHECK(graph.ok(), "a graph of a test");
  auto plan = cuda::RebuildCudnnPlan(*graph, kSearched, {1, {}});
  HT_CHECK(plan.ok(), "a plan of a test");
  return *std::move(plan);
}

int64_t Setting(const CudnnChoice& choice, cudnnBackendKnobType_t type, int64_t otherwise) {
  for (const auto& [of, value] : choice.knobs) {
    if (of == type) return value;
  }
  return otherwise;
}
int64_t Parts(const CudnnChoice& c) { return Setting(c, CUDNN_KNOB_TYPE_SPLIT_K_SLC, 1); }
int64_t Tile(const CudnnChoice& c) { return Setting(c, CUDNN_KNOB_TYPE_TILE_SIZE, -1); }

// What is tried, as "parts/tile" and a bar after each round, where `cost` says how long a choice takes.
struct Trace {
  std::string tried;
  CudnnChoice best;
};
Trace Search(size_t budget, const std::function<double(const CudnnChoice&)>& cost) {
  const CudnnPlan start = DefaultPlan();
  CudnnKnobSearch search(start, kSearched, budget, /*seconds=*/60);
  Trace trace{"", start.choice};
  while (true) {
    const std::vector<CudnnPlan> plans = search.Next(trace.best);
    if (plans.empty()) return trace;
    for (const CudnnPlan& plan : plans) {
      trace.tried += Concat(Parts(plan.choice), "/", Tile(plan.choice), " ");
      if (cost(plan.choice) < cost(trace.best)) trace.best = plan.choice;
    }
    trace.tried += "| ";
  }
}

TEST(CudnnKnobSearchTest, KnobsOfAnEngine) {
  const auto knobs = cuda::CudnnKnobs(DefaultPlan());
  ASSERT_TRUE(knobs.ok()) << Message(knobs.status());
  ASSERT_EQ(knobs->size(), 2U);
  EXPECT_EQ((*knobs)[0].type, CUDNN_KNOB_TYPE_TILE_SIZE);
  EXPECT_EQ((*knobs)[0].minimum, 0);
  EXPECT_EQ((*knobs)[0].maximum, 7);
  EXPECT_EQ((*knobs)[0].stride, 1);
  EXPECT_EQ((*knobs)[1].type, CUDNN_KNOB_TYPE_SPLIT_K_SLC);
  EXPECT_EQ((*knobs)[1].minimum, 1);
  EXPECT_EQ((*knobs)[1].maximum, 128);
}

// Parts first, then around the fastest; then tiles, of which the engine refuses 6 and 7.
TEST(CudnnKnobSearchTest, GoesOnFromTheFastest) {
  const Trace trace = Search(100, [](const CudnnChoice& c) {
    return std::abs(static_cast<double>(Parts(c)) - 9) + (Tile(c) == 2 ? 0 : 1);
  });
  EXPECT_EQ(trace.tried, "4/-1 16/-1 64/-1 | 8/-1 2/-1 | 8/0 8/4 8/2 8/1 | 8/3 8/5 | ");
  EXPECT_EQ(trace.best,
            (CudnnChoice{1, {{CUDNN_KNOB_TYPE_SPLIT_K_SLC, 8}, {CUDNN_KNOB_TYPE_TILE_SIZE, 2}}}));
}

TEST(CudnnKnobSearchTest, StopsWhereNothingIsFaster) {
  const Trace trace = Search(100, [](const CudnnChoice& c) { return c.knobs.size(); });
  EXPECT_EQ(trace.tried, "4/-1 16/-1 64/-1 | 2/-1 | 1/0 1/4 1/2 1/1 | ");
  EXPECT_THAT(trace.best.knobs, IsEmpty());
}

TEST(CudnnKnobSearchTest, StaysWithinTheRange) {
  const Trace trace = Search(5, [](const CudnnChoice& c) { return -Parts(c); });
  EXPECT_EQ(trace.tried, "4/-1 16/-1 64/-1 | 128/-1 32/-1 | ");
}

TEST(CudnnKnobSearchTest, KeepsToItsBudget) {
  const auto cost = [](const CudnnChoice& c) { return -static_cast<double>(c.knobs.size()); };
  EXPECT_EQ(Search(0, cost).tried, "");
  EXPECT_EQ(Search(2, cost).tried, "4/-1 16/-1 | ");
  EXPECT_EQ(Search(6, cost).tried, "4/-1 16/-1 64/-1 | 8/-1 2/-1 | 4/0 | ");
}

TEST(CudnnKnobSearchTest, BeginsNoPlanWhenItsTimeIsOver) {
  const CudnnPlan start = DefaultPlan();
  EXPECT_THAT(CudnnKnobSearch(start, kSearched, 100, /*seconds=*/-1).Next(start.choice), IsEmpty());
}

// What was found is made again by what the cache keeps of it.
TEST(CudnnKnobSearchTest, ChoicesAreRebuilt) {
  const CudnnPlan start = DefaultPlan();
  CudnnKnobSearch search(start, kSearched, 3, /*seconds=*/60);
  for (const CudnnPlan& plan : search.Next(start.choice)) {
    const auto parsed = CudnnChoice::Parse(plan.choice.ToString());
    ASSERT_TRUE(parsed.ok()) << plan.choice.ToString();
    const auto again = cuda::RebuildCudnnPlan(start.graph, kSearched, *parsed);
    ASSERT_TRUE(again.ok()) << Message(again.status());
    EXPECT_EQ(again->choice, plan.choice);
    EXPECT_EQ(again->workspace_bytes, plan.workspace_bytes);
    EXPECT_NE(again->workspace_bytes, start.workspace_bytes);
  }
}

}  // namespace
}  // namespace halftone::testing
