// The emulated NCCL: what it computes, and that each misuse of it is found. Every rank runs every test.
#if defined(HALFTONE_CUDA_EMULATED) && defined(HALFTONE_HAS_NCCL)
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <nccl.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "halftone/distributed/communicator.h"
#include "halftone/distributed/distributed.h"
#include "halftone/tests/cuda_emulation/control.h"

namespace halftone::testing {
namespace {

using distributed::Rank;
using distributed::Size;
using ::testing::HasSubstr;

constexpr int kCount = 100;

class NcclEmulation : public ::testing::Test {
 protected:
  void SetUp() override {
    emulation::Options options = before_;
    options.hang_seconds = 3;
    emulation::SetOptions(options);
    ASSERT_EQ(cudaSetDevice(Rank()), cudaSuccess);
    ASSERT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess);
    ASSERT_EQ(cudaMalloc(&buffer_, kCount * sizeof(float)), cudaSuccess);
    std::vector<float> values(kCount);
    for (int i = 0; i < kCount; ++i)
      values[static_cast<size_t>(i)] = static_cast<float>(i + Rank());
    ASSERT_EQ(cudaMemcpy(buffer_, values.data(), kCount * sizeof(float), cudaMemcpyHostToDevice),
              cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);  // the stream does not wait for the copy
  }
  void TearDown() override {
    ASSERT_TRUE(distributed::Barrier().ok());  // an abort would hide what another rank is to find
    if (comm_ != nullptr) ncclCommAbort(comm_);
    emulation::ClearErrors();
    cudaFree(buffer_);
    cudaStreamDestroy(stream_);
    emulation::SetOptions(before_);
    ASSERT_TRUE(distributed::Barrier().ok());
  }

  ncclResult_t Join(int rank, int ranks, bool blocking = true) {
    ncclUniqueId id{};
    if (Rank() == 0) {
      EXPECT_EQ(ncclGetUniqueId(&id), ncclSuccess);
    }
    EXPECT_TRUE(distributed::World().Broadcast(&id, sizeof(id), 0).ok());
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = blocking ? 1 : 0;
    return ncclCommInitRankConfig(&comm_, ranks, id, rank, &config);
  }
  void Join() { ASSERT_EQ(Join(Rank(), Size()), ncclSuccess); }

  ncclResult_t Sum(size_t count = kCount, ncclDataType_t dtype = ncclFloat32,
                   ncclRedOp_t op = ncclSum) {
    return ncclAllReduce(buffer_, buffer_, count, dtype, op, comm_, stream_);
  }
  ncclResult_t SumOn(int root, size_t count = kCount) {
    return ncclReduce(buffer_, buffer_, count, ncclFloat32, ncclSum, root, comm_, stream_);
  }
  ncclResult_t CopyFrom(int root, size_t count = kCount) {
    return ncclBroadcast(buffer_, buffer_, count, ncclFloat32, root, comm_, stream_);
  }
  float* At(int element) { return static_cast<float*>(buffer_) + element; }

  // Ends what a broken reduction began, and gives what was said of it.
  std::string FailureOf(cudaError_t expected) {
    EXPECT_EQ(cudaStreamSynchronize(stream_), expected);
    return emulation::LastReport();
  }
  std::vector<float> Values() {
    std::vector<float> values(kCount);
    EXPECT_EQ(cudaMemcpyAsync(values.data(), buffer_, kCount * sizeof(float),
                              cudaMemcpyDeviceToHost, stream_),
              cudaSuccess);
    return values;
  }
  void ExpectSums(int times = 1) {
    double factor = 1, sum_of_ranks = 0;
    for (int r = 0; r < Size(); ++r) sum_of_ranks += r;
    for (int k = 1; k < times; ++k) factor *= Size();
    const std::vector<float> values = Values();
    for (int i = 0; i < kCount; ++i) {
      EXPECT_EQ(values[static_cast<size_t>(i)], factor * (Size() * i + sum_of_ranks)) << i;
    }
  }

  const emulation::Options before_ = emulation::GetOptions();
  ncclComm_t comm_ = nullptr;
  cudaStream_t stream_ = nullptr;
  void* buffer_ = nullptr;
};

TEST_F(NcclEmulation, SumsOverTheRanks) {
  Join();
  ASSERT_EQ(Sum(), ncclSuccess);
  ExpectSums();
  ASSERT_EQ(Sum(), ncclSuccess);
  ExpectSums(2);
  EXPECT_EQ(ncclCommFinalize(comm_), ncclSuccess);
  EXPECT_EQ(ncclCommDestroy(comm_), ncclSuccess);
  comm_ = nullptr;
}

TEST_F(NcclEmulation, SumsForOneRankAndCopiesFromOne) {
  Join();
  ASSERT_EQ(SumOn(1), ncclSuccess);
  if (Rank() == 1) {
    ExpectSums();
  } else {
    EXPECT_EQ(Values()[7], 7 + Rank());  // as it was
  }
  ASSERT_EQ(CopyFrom(1), ncclSuccess);
  ExpectSums();
}

// Parts of a buffer for one rank each, then all parts on all.
TEST_F(NcclEmulation, AGroupBeginsAtItsEnd) {
  Join();
  const int part = kCount / Size();
  const auto each = [&](auto begin) {
    ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
    ASSERT_EQ(ncclGroupStart(), ncclSuccess);
    for (int r = 0; r < Size(); ++r) ASSERT_EQ(begin(At(r * part), r), ncclSuccess);
    EXPECT_EQ(cudaStreamQuery(stream_), cudaSuccess);  // nothing is there to wait for
    ASSERT_EQ(ncclGroupEnd(), ncclSuccess);
  };
  const auto count = static_cast<size_t>(part);
  each([&](float* p, int r) {
    return ncclReduce(p, p, count, ncclFloat32, ncclSum, r, comm_, stream_);
  });
  each([&](float* p, int r) { return ncclBroadcast(p, p, count, ncclFloat32, r, comm_, stream_); });
  ExpectSums();
}

TEST_F(NcclEmulation, RefusesRootsThatAreNoRanksAndGroupsThatHaveNotBegun) {
  Join();
  EXPECT_EQ(SumOn(Size()), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("root "));
  EXPECT_EQ(CopyFrom(-1), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  // A group with a call that was refused begins nothing.
  ASSERT_EQ(ncclGroupStart(), ncclSuccess);
  EXPECT_EQ(SumOn(0), ncclSuccess);
  EXPECT_EQ(SumOn(0, kCount + 1), ncclInvalidArgument);
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  // What only others read or write is not looked at.
  float host = 0;
  const bool is_root = Rank() == 0;
  EXPECT_EQ(ncclReduce(buffer_, is_root ? buffer_ : &host, kCount, ncclFloat32, ncclSum, 0, comm_,
                       stream_),
            ncclSuccess);
  EXPECT_EQ(
      ncclBroadcast(is_root ? buffer_ : &host, buffer_, kCount, ncclFloat32, 0, comm_, stream_),
      ncclSuccess);
  ExpectSums();
  EXPECT_EQ(ncclReduce(&host, buffer_, 1, ncclFloat32, ncclSum, 0, comm_, stream_),
            ncclInvalidArgument);
  EXPECT_EQ(ncclBroadcast(buffer_, &host, 1, ncclFloat32, Rank() == 0 ? 1 : 0, comm_, stream_),
            ncclInvalidArgument);
}

TEST_F(NcclEmulation, FindsOtherRoots) {
  Join();
  ASSERT_EQ(SumOn(Rank() == 0 ? 0 : 1), ncclSuccess);
  EXPECT_THAT(FailureOf(cudaErrorLaunchFailure), HasSubstr("reduces to 1: 100 elements"));
}

TEST_F(NcclEmulation, FindsOtherCountsOfABroadcast) {
  Join();
  ASSERT_EQ(CopyFrom(0, Rank() == 0 ? 64 : 65), ncclSuccess);
  EXPECT_THAT(FailureOf(cudaErrorLaunchFailure), HasSubstr("broadcasts from 0: 65 elements"));
}

TEST_F(NcclEmulation, FindsAReductionWhereOthersBroadcast) {
  Join();
  ASSERT_EQ(Rank() == 0 ? SumOn(0) : CopyFrom(0), ncclSuccess);
  EXPECT_THAT(FailureOf(cudaErrorLaunchFailure), HasSubstr("reduces to 0: 100 elements"));
}

TEST_F(NcclEmulation, FindsARankThatDoesNotComeToABroadcast) {
  Join();
  if (Rank() == 0) {
    ASSERT_EQ(CopyFrom(0), ncclSuccess);
    EXPECT_THAT(FailureOf(cudaErrorLaunchTimeout), HasSubstr("rank 1 has not come"));
  }
}

TEST_F(NcclEmulation, ReplaysACapturedReduction) {
  Join();
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), cudaSuccess);
  ASSERT_EQ(Sum(), ncclSuccess);
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  ExpectSums(2);
  // NCCL would wait for the graph to be destroyed.
  EXPECT_EQ(ncclCommFinalize(comm_), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("a captured graph refers to it"));
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(ncclCommFinalize(comm_), ncclSuccess);
}

TEST_F(NcclEmulation, OneThatDoesNotBlockIsAskedBeforeTheNextCall) {
  ASSERT_EQ(Join(Rank(), Size(), /*blocking=*/false), ncclInProgress);
  EXPECT_EQ(Sum(), ncclInvalidUsage);
  const auto settle = [this] {
    ncclResult_t state = ncclInProgress;
    while (state == ncclInProgress) {
      EXPECT_EQ(ncclCommGetAsyncError(comm_, &state), ncclSuccess);
    }
    return state;
  };
  ASSERT_EQ(settle(), ncclSuccess);
  ASSERT_EQ(Sum(), ncclInProgress);
  EXPECT_EQ(Sum(), ncclInvalidUsage);
  ASSERT_EQ(settle(), ncclSuccess);
  ExpectSums();
}

TEST_F(NcclEmulation, FindsOtherCounts) {
  Join();
  ASSERT_EQ(Sum(Rank() == 0 ? 64 : 65), ncclSuccess);
  EXPECT_THAT(FailureOf(cudaErrorLaunchFailure), HasSubstr("reduces 65 elements"));
}

TEST_F(NcclEmulation, FindsOtherDTypes) {
  Join();
  ASSERT_EQ(Sum(64, Rank() == 0 ? ncclFloat16 : ncclBfloat16), ncclSuccess);
  EXPECT_THAT(FailureOf(cudaErrorLaunchFailure), HasSubstr("of dtype 9"));
}

TEST_F(NcclEmulation, FindsOtherOps) {
  Join();
  ASSERT_EQ(Sum(64, ncclFloat32, Rank() == 0 ? ncclSum : ncclMax), ncclSuccess);
  EXPECT_THAT(FailureOf(cudaErrorLaunchFailure), HasSubstr("by op 2"));
}

TEST_F(NcclEmulation, FindsAnotherOrder) {
  Join();
  const size_t first = Rank() == 0 ? 64 : 32;
  ASSERT_EQ(Sum(first), ncclSuccess);
  (void)Sum(96 - first);  // refused if the device has failed by then
  EXPECT_THAT(FailureOf(cudaErrorLaunchFailure), HasSubstr("reduction 1: "));
}

TEST_F(NcclEmulation, FindsARankThatDoesNotCome) {
  Join();
  if (Rank() == 0) {
    ASSERT_EQ(Sum(), ncclSuccess);
    EXPECT_THAT(FailureOf(cudaErrorLaunchTimeout),
                HasSubstr("the host waits for ever: reduction 1 of rank 0: rank 1 has not come"));
  }
}

TEST_F(NcclEmulation, FindsARankThatDoesNotJoin) {
  if (Rank() != 0) {
    ncclUniqueId id{};
    ASSERT_TRUE(distributed::World().Broadcast(&id, sizeof(id), 0).ok());
    return;
  }
  EXPECT_EQ(Join(0, Size()), ncclSystemError);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("waits for ever"));
}

TEST_F(NcclEmulation, FindsTwoRanksOfOneNumberAndOtherNumbersOfRanks) {
  if (Size() != 2) GTEST_SKIP();
  if (Rank() == 1) {
    // The other one has joined by then, or refuses in turn.
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ncclResult_t joined = Join(0, Size(), /*blocking=*/false);
  const auto all =
      distributed::World().Exchange(std::string(1, static_cast<char>('0' + joined)), "test");
  ASSERT_TRUE(all.ok());
  EXPECT_THAT((*all)[0] + (*all)[1], ::testing::AnyOf("57", "75"));  // invalid usage, in progress
  if (comm_ != nullptr) ncclCommAbort(comm_);
  comm_ = nullptr;
  joined = Join(Rank(), Rank() == 0 ? 2 : 3, /*blocking=*/false);
  ASSERT_EQ(joined, ncclInProgress);
  ASSERT_TRUE(distributed::Barrier().ok());
  ncclResult_t state = ncclSuccess;
  ASSERT_EQ(ncclCommGetAsyncError(comm_, &state), ncclSuccess);
  if (Rank() == 0) {
    EXPECT_EQ(state, ncclInvalidUsage);
  }
  ASSERT_TRUE(distributed::Barrier().ok());
}

TEST_F(NcclEmulation, FindsTwoRanksOnOneDevice) {
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  EXPECT_EQ(Join(Rank(), Size()), ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("two ranks on one device"));
  ASSERT_EQ(cudaSetDevice(Rank()), cudaSuccess);
}

TEST_F(NcclEmulation, RefusesWhatTheLibraryDoes) {
  Join();
  std::vector<float> host(kCount);
  const auto reduce = [&](const void* from, void* to, size_t count, cudaStream_t stream) {
    return ncclAllReduce(from, to, count, ncclFloat32, ncclSum, comm_, stream);
  };
  EXPECT_EQ(reduce(host.data(), buffer_, kCount, stream_), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("the source: 400 bytes from not device memory"));
  EXPECT_EQ(reduce(buffer_, nullptr, kCount, stream_), ncclInvalidArgument);
  EXPECT_EQ(reduce(buffer_, buffer_, kCount + 1, stream_), ncclInvalidArgument);
  auto* const later = static_cast<char*>(buffer_) + 4;
  EXPECT_EQ(reduce(buffer_, later, 10, stream_), ncclInvalidUsage);
  EXPECT_EQ(Sum(kCount, static_cast<ncclDataType_t>(13)), ncclInvalidArgument);
  EXPECT_EQ(Sum(kCount, ncclFloat32, static_cast<ncclRedOp_t>(99)), ncclInvalidArgument);
  EXPECT_EQ(Sum(kCount, ncclInt8), ncclInvalidUsage);
  EXPECT_EQ(Sum(kCount, ncclFloat32, ncclAvg), ncclInvalidUsage);
  // Nothing of it has begun a reduction.
  ASSERT_EQ(Sum(), ncclSuccess);
  ExpectSums();
}

TEST_F(NcclEmulation, RefusesStreamsAndMemoryOfAnotherDevice) {
  Join();
  ASSERT_EQ(cudaSetDevice((Rank() + 1) % Size()), cudaSuccess);
  cudaStream_t other = nullptr;
  void* memory = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(cudaMalloc(&memory, kCount * sizeof(float)), cudaSuccess);
  ASSERT_EQ(cudaSetDevice(Rank()), cudaSuccess);
  EXPECT_EQ(ncclAllReduce(buffer_, buffer_, kCount, ncclFloat32, ncclSum, comm_, other),
            ncclInvalidUsage);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("a stream that is not of"));
  EXPECT_EQ(ncclAllReduce(memory, memory, kCount, ncclFloat32, ncclSum, comm_, stream_),
            ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("memory of another device"));
  cudaFree(memory);
  cudaStreamDestroy(other);
}

TEST_F(NcclEmulation, RefusesUseAfterItsEnd) {
  Join();
  ASSERT_EQ(ncclCommDestroy(comm_), ncclSuccess);
  EXPECT_EQ(Sum(), ncclInvalidArgument);
  EXPECT_THAT(ncclGetLastError(nullptr), HasSubstr("does not live"));
  EXPECT_EQ(ncclCommDestroy(comm_), ncclInvalidArgument);
  comm_ = nullptr;
}

TEST_F(NcclEmulation, AnAbortEndsWhatWaitsAndIsHeardByTheOthers) {
  Join();
  if (Rank() == 0) {
    ASSERT_EQ(Sum(), ncclSuccess);
    EXPECT_EQ(cudaStreamQuery(stream_), cudaErrorNotReady);
    ASSERT_EQ(ncclCommAbort(comm_), ncclSuccess);
    comm_ = nullptr;
    const std::vector<float> values = Values();
    EXPECT_NE(values[0], values[0]);  // NaN
  }
  ASSERT_TRUE(distributed::Barrier().ok());
  if (Rank() != 0) {
    ncclResult_t state = ncclSuccess;
    ASSERT_EQ(ncclCommGetAsyncError(comm_, &state), ncclSuccess);
    EXPECT_EQ(state, ncclRemoteError);
  }
}

}  // namespace
}  // namespace halftone::testing
#endif
