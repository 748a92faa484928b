#include "halftone/distributed/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

namespace halftone::distributed {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Indices = std::vector<int64_t>;

Sampler Of(int64_t count, SamplerOptions options) {
  absl::StatusOr<Sampler> sampler = Sampler::Make(count, options);
  EXPECT_TRUE(sampler.ok()) << sampler.status();
  return *std::move(sampler);
}

Indices BatchOf(Sampler& sampler, int64_t step) {
  const absl::Span<const int64_t> batch = sampler.Batch(step);
  return {batch.begin(), batch.end()};
}

// What all ranks take in a step, one behind the other.
Indices Together(int64_t count, SamplerOptions options, uint64_t epoch, int64_t step) {
  Indices all;
  for (options.rank = 0; options.rank < options.ranks; ++options.rank) {
    Sampler sampler = Of(count, options);
    sampler.SetEpoch(epoch);
    const Indices own = BatchOf(sampler, step);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

TEST(Sampler, GivesRanksOnePartBehindTheOther) {
  Sampler first = Of(12, {.batch = 2, .shuffle = false, .rank = 0, .ranks = 3});
  Sampler last = Of(12, {.batch = 2, .shuffle = false, .rank = 2, .ranks = 3});
  EXPECT_EQ(first.steps(), 2);
  EXPECT_THAT(BatchOf(first, 0), ElementsAre(0, 1));
  EXPECT_THAT(BatchOf(last, 0), ElementsAre(4, 5));
  EXPECT_THAT(BatchOf(first, 1), ElementsAre(6, 7));
  EXPECT_THAT(BatchOf(last, 1), ElementsAre(10, 11));
}

TEST(Sampler, OfManyRanksTakesWhatOneTakes) {
  Sampler one = Of(100, {.batch = 12, .seed = 7, .rank = 0, .ranks = 1});
  one.SetEpoch(3);
  for (const int ranks : {2, 3, 4}) {
    for (int64_t step = 0; step < one.steps(); ++step) {
      EXPECT_EQ(Together(100, {.batch = 12 / ranks, .seed = 7, .ranks = ranks}, 3, step),
                BatchOf(one, step));
    }
  }
}

TEST(Sampler, ShufflesByEpochAndSeed) {
  const auto epoch = [](uint64_t seed, uint64_t number) {
    Sampler sampler = Of(50, {.batch = 50, .seed = seed, .rank = 0, .ranks = 1});
    sampler.SetEpoch(number);
    return BatchOf(sampler, 0);
  };
  EXPECT_EQ(epoch(1, 2), epoch(1, 2));
  EXPECT_NE(epoch(1, 2), epoch(1, 3));
  EXPECT_NE(epoch(1, 2), epoch(2, 2));
  Indices sorted = epoch(1, 2), all(50);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(sorted, all);
}

// 11 samples, 2 ranks of 2: two steps of 4, and 3 are left.
TEST(Sampler, DropsPadsOrShortensTheTail) {
  const SamplerOptions two = {.batch = 2, .shuffle = false, .ranks = 2};
  const auto with = [&two](Tail tail) {
    SamplerOptions options = two;
    options.tail = tail;
    return options;
  };
  SamplerOptions own = with(Tail::kDrop);
  own.rank = 0;
  EXPECT_EQ(Of(11, own).steps(), 2);
  own.tail = Tail::kPad;
  EXPECT_EQ(Of(11, own).steps(), 3);
  EXPECT_EQ(Together(11, with(Tail::kPad), 0, 2), (Indices{8, 9, 10, 0}));
  own.tail = Tail::kShorten;
  EXPECT_EQ(Of(11, own).steps(), 3);
  EXPECT_EQ(Together(11, with(Tail::kShorten), 0, 2), (Indices{8, 9}));
  EXPECT_EQ(Of(9, own).steps(), 2);  // one sample is none for each rank
}

TEST(Sampler, PadsAlsoADataSetSmallerThanABatch) {
  EXPECT_EQ(Together(3, {.batch = 2, .shuffle = false, .tail = Tail::kPad, .ranks = 4}, 0, 0),
            (Indices{0, 1, 2, 0, 1, 2, 0, 1}));
  EXPECT_EQ(Of(0, {.rank = 0, .ranks = 1}).steps(), 0);
}

TEST(Sampler, RefusesWhatIsNone) {
  const auto error = [](int64_t count, SamplerOptions options) {
    return std::string(Sampler::Make(count, options).status().message());
  };
  EXPECT_THAT(error(-1, {}), HasSubstr("count is -1"));
  EXPECT_THAT(error(5, {.batch = 0}), HasSubstr("batch is 0"));
  EXPECT_THAT(error(5, {.rank = 2, .ranks = 2}), HasSubstr("rank is 2 of 2"));
}

}  // namespace
}  // namespace halftone::distributed
