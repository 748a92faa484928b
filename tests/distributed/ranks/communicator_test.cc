// What ranks say to each other: bytes, errors, and sums that are the same on all, bit for bit.
#include "halftone/distributed/communicator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "halftone/core/alloc_counter.h"
#include "halftone/core/convert.h"
#include "halftone/distributed/all_reduce.h"
#include "halftone/halftone.h"

namespace halftone::distributed {
namespace {

using ::testing::Each;
using ::testing::HasSubstr;

TEST(Exchange, GivesWhatEveryRankHasInOrder) {
  Communicator& world = World();
  // Of rank r: r times 1000 bytes, so that of rank 0 there are none.
  const std::string mine(1000 * static_cast<size_t>(Rank()), static_cast<char>('a' + Rank()));
  const auto all = world.Exchange(mine, "test");
  ASSERT_TRUE(all.ok()) << all.status();
  ASSERT_EQ(all->size(), static_cast<size_t>(Size()));
  for (int r = 0; r < Size(); ++r) {
    EXPECT_EQ((*all)[static_cast<size_t>(r)],
              std::string(1000 * static_cast<size_t>(r), static_cast<char>('a' + r)));
  }
}

TEST(Broadcast, GivesTheBytesOfAnyRank) {
  for (int root = 0; root < Size(); ++root) {
    for (const size_t bytes : {size_t{1}, size_t{7}, size_t{300000}}) {
      std::string data(bytes, static_cast<char>('A' + Rank()));
      ASSERT_TRUE(World().Broadcast(data.data(), bytes, root).ok());
      EXPECT_EQ(data, std::string(bytes, static_cast<char>('A' + root)));
    }
  }
}

TEST(Agree, GivesAllTheErrorOfTheFirstRankThatHasOne) {
  EXPECT_TRUE(Agree(absl::OkStatus()).ok());
  const absl::Status own = Rank() == 0 ? absl::OkStatus() : NotFound("file ", Rank(), " is gone");
  const absl::Status agreed = Agree(own);
  EXPECT_TRUE(absl::IsNotFound(agreed)) << agreed;
  EXPECT_EQ(Message(agreed), "rank 1: file 1 is gone");
}

TEST(Sum, IsOverTheRanks) {
  const auto sum = Sum(Rank() + 0.5);
  ASSERT_TRUE(sum.ok()) << sum.status();
  EXPECT_EQ(*sum, Size() * (Size() - 1) / 2.0 + 0.5 * Size());
}

TEST(FindSilent, IsNobodyWhereAllAnswer) { EXPECT_EQ(World().FindSilent(20), -1); }

TEST(Ranks, OfOneMachineAreNumbered) {
  EXPECT_EQ(LocalRank(), Rank());  // the jobs of these tests are on one machine
  EXPECT_EQ(DeviceOfRank(Device::Kind::kCuda), Device::Cuda(Rank()));
  EXPECT_EQ(DeviceOfRank(), Device::Cpu());
}

TEST(Init, IsOnce) { EXPECT_TRUE(absl::IsFailedPrecondition(Init())); }

// A reduction with its buffer.
struct Reduced {
  Reduced(DType dtype, int64_t elements, bool mean)
      : dtype(dtype),
        elements(elements),
        buffer(Tensor::Empty(dtype, Shape({AllReduce::BufferElements(elements, Size())}))),
        reduction(World(), dtype, elements, mean) {}
  void Start(bool failed = false) { reduction.Start(buffer.raw(), failed); }
  bool Wait() {
    bool failed = false;
    const absl::Status status = reduction.Wait(&failed);
    EXPECT_TRUE(status.ok()) << status;
    return failed;
  }
  DType dtype;
  int64_t elements;
  Tensor buffer;
  AllReduce reduction;
};

// Whole numbers below 2^11 that f16 has, as are their sums.
double Term(int rank, int64_t i) { return static_cast<double>((rank + 1) * (i % 23) - 30); }

TEST(AllReduce, AddsWhatAllRanksHave) {
  for (const DType dtype : {DType::kF64, DType::kF32, DType::kF16, DType::kBF16}) {
    for (const int64_t elements : {0, 1, 31, 32, 33, 1000, 100003}) {
      for (const bool mean : {false, true}) {
        Reduced sum(dtype, elements, mean);
        for (int64_t i = 0; i < elements; ++i) sum.buffer.set(i, Term(Rank(), i));
        sum.Start();
        EXPECT_FALSE(sum.Wait());
        int64_t wrong = 0;
        for (int64_t i = 0; i < elements; ++i) {
          double want = 0;
          for (int r = 0; r < Size(); ++r) want += Term(r, i);
          if (mean) want /= Size();
          wrong += sum.buffer.at(i) != Tensor::Scalar(dtype, want).item() ? 1 : 0;
        }
        EXPECT_EQ(wrong, 0) << Name(dtype) << " " << elements << (mean ? " mean" : " sum");
      }
    }
  }
}

// In f16 2048 + 1 is 2048; in f32 1 + 1 + 1 is not lost: 2051, which f16 rounds to 2052 (its
// neighbours are 2050 and 2052, and 2052 / 2 is even).
TEST(AllReduce, AddsSixteenBitsInF32) {
  if (Size() != 4) GTEST_SKIP() << "the numbers are those of 4 ranks";
  Reduced sum(DType::kF16, 64, /*mean=*/false);
  for (int64_t i = 0; i < 64; ++i) sum.buffer.set(i, Rank() == 0 ? 2048 : 1);
  sum.Start();
  EXPECT_FALSE(sum.Wait());
  for (int64_t i = 0; i < 64; ++i) EXPECT_EQ(sum.buffer.at(i), 2052);
}

// f32 terms in the order of the ranks: (2^24 + 1) + -2^24 is 0, in another order 1.
TEST(AllReduce, AddsInTheOrderOfTheRanks) {
  const double terms[] = {16777216, 1, -16777216, 1};
  Reduced sum(DType::kF32, 5, /*mean=*/false);
  for (int64_t i = 0; i < 5; ++i) sum.buffer.set(i, Rank() < 4 ? terms[Rank()] : 0);
  float want = 0;
  for (int r = 0; r < Size() && r < 4; ++r) want += static_cast<float>(terms[r]);
  sum.Start();
  EXPECT_FALSE(sum.Wait());
  for (int64_t i = 0; i < 5; ++i) EXPECT_EQ(sum.buffer.at(i), want);
}

TEST(AllReduce, SeveralAreUnderWayInAnyOrderOfWaits) {
  std::vector<std::unique_ptr<Reduced>> sums;
  for (int64_t k = 0; k < 6; ++k) {
    sums.push_back(std::make_unique<Reduced>(DType::kF32, 1000 * (k + 1), /*mean=*/false));
    for (int64_t i = 0; i < sums.back()->elements; ++i)
      sums.back()->buffer.set(i, static_cast<double>(k + Rank()));
    sums.back()->Start();
    World().Progress();
  }
  for (const size_t k : {5, 0, 3, 4, 1, 2}) {
    EXPECT_EQ(World().Find(sums[k]->buffer.raw()), &sums[k]->reduction);
    EXPECT_FALSE(sums[k]->Wait());
    const double want = static_cast<double>(k) * Size() + Size() * (Size() - 1) / 2.0;
    EXPECT_EQ(sums[k]->buffer.at(0), want);
    EXPECT_EQ(sums[k]->buffer.at(sums[k]->elements - 1), want);
  }
  EXPECT_FALSE(World().any_under_way());
}

TEST(AllReduce, TellsAllOfARankThatHasFailed) {
  for (int bad = 0; bad < Size(); ++bad) {
    for (const DType dtype : {DType::kF32, DType::kF16}) {
      Reduced sum(dtype, 100, /*mean=*/true);
      for (int64_t i = 0; i < 100; ++i) sum.buffer.set(i, 1);
      sum.Start(Rank() == bad);
      EXPECT_TRUE(sum.Wait());
      sum.Start();  // and is over then
      EXPECT_FALSE(sum.Wait());
    }
  }
}

TEST(AllReduce, AllocatesNothing) {
  Reduced sum(DType::kF32, 100000, /*mean=*/true);
  for (int run = 0; run < 3; ++run) {
    const AllocationCounter counter;
    sum.Start();
    EXPECT_FALSE(sum.Wait());
    EXPECT_EQ(counter.count(), 0);
  }
}

}  // namespace
}  // namespace halftone::distributed
