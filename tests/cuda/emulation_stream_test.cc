// The emulated device: streams and events, eager and lazy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/test_kernels.h"
#include "halftone/tests/cuda_emulation/control.h"

namespace halftone::testing {
namespace {

using emulation::Options;
using emulation::ScopedOptions;

Options WithStreams(bool lazy) {
  Options options = emulation::GetOptions();
  options.lazy = lazy;
  return options;
}

uint64_t KernelsRun() { return emulation::GetStatistics().kernels; }

class EmulatedStream : public ::testing::TestWithParam<bool> {
 protected:
  EmulatedStream() : options_(WithStreams(GetParam())) {
    for (cudaStream_t* stream : {&a_, &b_}) {
      CheckCuda(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    }
    CheckCuda(cudaEventCreate(&event_));
    CheckCuda(cudaDeviceSynchronize());
    emulation::ResetStatistics();
  }
  ~EmulatedStream() override {
    CheckCuda(cudaEventDestroy(event_));
    for (cudaStream_t stream : {a_, b_}) CheckCuda(cudaStreamDestroy(stream));
  }

  bool lazy() const { return GetParam(); }

  cudaStream_t a_ = nullptr, b_ = nullptr;
  cudaEvent_t event_ = nullptr;

 private:
  ScopedOptions options_;
};

INSTANTIATE_TEST_SUITE_P(All, EmulatedStream, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "Lazy" : "Eager"; });

TEST_P(EmulatedStream, WorkIsDoneAtTheLatestWhenTheHostHasWaited) {
  const DeviceArray<int> x(size_t{3}), y(size_t{3});
  ASSERT_EQ(LaunchFill(x.data(), 3, 5, a_), cudaSuccess);
  ASSERT_EQ(LaunchAddOne(y.data(), x.data(), 3, a_), cudaSuccess);
  EXPECT_EQ(KernelsRun(), lazy() ? 0u : 2u);
  ASSERT_EQ(cudaStreamSynchronize(b_), cudaSuccess);
  EXPECT_EQ(KernelsRun(), lazy() ? 0u : 2u);
  ASSERT_EQ(cudaStreamSynchronize(a_), cudaSuccess);
  EXPECT_EQ(KernelsRun(), 2u);
  EXPECT_EQ(y.Get(), std::vector(3, 6));
}

TEST_P(EmulatedStream, EventsOrderStreams) {
  const DeviceArray<int> x(size_t{3}), y(size_t{3});
  ASSERT_EQ(LaunchFill(x.data(), 3, 5, a_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, a_), cudaSuccess);
  // After the event: not waited for.
  ASSERT_EQ(LaunchFill(x.data(), 3, 9, a_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(b_, event_, 0), cudaSuccess);
  ASSERT_EQ(LaunchAddOne(y.data(), x.data(), 3, b_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(b_), cudaSuccess);
  EXPECT_EQ(KernelsRun(), lazy() ? 2u : 3u);
  EXPECT_EQ(y.Get(), std::vector(3, lazy() ? 6 : 10));
}

TEST_P(EmulatedStream, AWaitIsForTheRecordBeforeIt) {
  ASSERT_EQ(cudaStreamWaitEvent(b_, event_, 0), cudaSuccess);  // of an event never recorded
  const DeviceArray<int> x(size_t{3});
  ASSERT_EQ(cudaEventRecord(event_, b_), cudaSuccess);
  ASSERT_EQ(cudaStreamWaitEvent(a_, event_, 0), cudaSuccess);
  ASSERT_EQ(LaunchFill(x.data(), 3, 5, b_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, b_), cudaSuccess);
  ASSERT_EQ(LaunchFill(x.data(), 3, 6, a_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(a_), cudaSuccess);
  EXPECT_EQ(KernelsRun(), lazy() ? 1u : 2u);
  ASSERT_EQ(cudaEventSynchronize(event_), cudaSuccess);
  EXPECT_EQ(KernelsRun(), 2u);
  EXPECT_EQ(emulation::GetStatistics().host_synchronisations, 2u);
}

TEST_P(EmulatedStream, TheLegacyStreamWaitsForBlockingOnesAlone) {
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  const DeviceArray<int> x(size_t{3});
  ASSERT_EQ(LaunchFill(x.data(), 3, 1, blocking), cudaSuccess);
  ASSERT_EQ(LaunchFill(x.data(), 3, 2, a_), cudaSuccess);
  ASSERT_EQ(LaunchFill(x.data(), 3, 3, nullptr), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(nullptr), cudaSuccess);
  EXPECT_EQ(KernelsRun(), lazy() ? 2u : 3u);
  ASSERT_EQ(LaunchFill(x.data(), 3, 4, nullptr), cudaSuccess);
  ASSERT_EQ(LaunchFill(x.data(), 3, 5, blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(blocking), cudaSuccess);
  EXPECT_EQ(KernelsRun(), lazy() ? 4u : 5u);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
}

TEST_P(EmulatedStream, ADestroyedStreamStillDoesItsWork) {
  const DeviceArray<int> x(size_t{3});
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  ASSERT_EQ(LaunchFill(x.data(), 3, 1, stream), cudaSuccess);
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(LaunchFill(x.data(), 3, 1, stream), cudaErrorInvalidResourceHandle);
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  EXPECT_EQ(KernelsRun(), 1u);
}

TEST_P(EmulatedStream, AHostThatAsksGetsOn) {
  const DeviceArray<int> x(size_t{3});
  ASSERT_EQ(LaunchFill(x.data(), 3, 1, a_), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(event_, a_), cudaSuccess);
  int queries = 0;
  while (cudaEventQuery(event_) == cudaErrorNotReady) ++queries;
  EXPECT_EQ(queries, lazy() ? 2 : 0);
  EXPECT_EQ(cudaGetLastError(), lazy() ? cudaErrorNotReady : cudaSuccess);
  ASSERT_EQ(LaunchFill(x.data(), 3, 2, a_), cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(a_), lazy() ? cudaErrorNotReady : cudaSuccess);
  EXPECT_EQ(cudaStreamQuery(a_), cudaSuccess);
  cudaGetLastError();
  EXPECT_EQ(emulation::GetStatistics().host_synchronisations, 0u);
}

TEST_P(EmulatedStream, ElapsedTime) {
  cudaEvent_t end = nullptr, untimed = nullptr;
  ASSERT_EQ(cudaEventCreate(&end), cudaSuccess);
  ASSERT_EQ(cudaEventCreateWithFlags(&untimed, cudaEventDisableTiming), cudaSuccess);
  float milliseconds = -1;
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event_, end), cudaErrorInvalidResourceHandle);
  for (const cudaEvent_t event : {event_, untimed, end}) {
    ASSERT_EQ(cudaEventRecord(event, a_), cudaSuccess);
  }
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event_, end),
            lazy() ? cudaErrorNotReady : cudaSuccess);
  ASSERT_EQ(cudaEventSynchronize(end), cudaSuccess);
  ASSERT_EQ(cudaEventElapsedTime(&milliseconds, event_, end), cudaSuccess);
  EXPECT_GE(milliseconds, 0.0f);
  EXPECT_EQ(cudaEventElapsedTime(&milliseconds, event_, untimed), cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  EXPECT_EQ(cudaEventDestroy(end), cudaSuccess);
  EXPECT_EQ(cudaEventDestroy(end), cudaErrorInvalidResourceHandle);
  EXPECT_EQ(cudaEventDestroy(untimed), cudaSuccess);
  cudaGetLastError();
}

struct HostCall {
  uint64_t kernels_before = 0;
  cudaError_t api = cudaSuccess;
};

TEST_P(EmulatedStream, HostFunctionsRunInOrderAndMayNotCallBack) {
  const DeviceArray<int> x(size_t{3});
  HostCall call;
  ASSERT_EQ(LaunchFill(x.data(), 3, 1, a_), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(
                a_,
                [](void* argument) {
                  HostCall& made = *static_cast<HostCall*>(argument);
                  made.kernels_before = KernelsRun();
                  int device = 0;
                  made.api = cudaGetDevice(&device);
                },
                &call),
            cudaSuccess);
  ASSERT_EQ(LaunchFill(x.data(), 3, 2, a_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(a_), cudaSuccess);
  EXPECT_EQ(call.kernels_before, 1u);
  EXPECT_EQ(call.api, cudaErrorNotPermitted);
  cudaGetLastError();
}

TEST_P(EmulatedStream, FlagsAndPriorities) {
  int least = 1, greatest = 1, priority = 1;
  ASSERT_EQ(cudaDeviceGetStreamPriorityRange(&least, &greatest), cudaSuccess);
  cudaStream_t stream = nullptr;
  ASSERT_EQ(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest - 1),
            cudaSuccess);
  ASSERT_EQ(cudaStreamGetPriority(stream, &priority), cudaSuccess);
  EXPECT_EQ(priority, greatest);
  unsigned flags = 7;
  ASSERT_EQ(cudaStreamGetFlags(stream, &flags), cudaSuccess);
  EXPECT_EQ(flags, static_cast<unsigned>(cudaStreamNonBlocking));
  ASSERT_EQ(cudaStreamDestroy(stream), cudaSuccess);
  EXPECT_EQ(cudaStreamCreateWithFlags(&stream, 16), cudaErrorInvalidValue);
  EXPECT_EQ(cudaEventCreateWithFlags(&event_, 64), cudaErrorInvalidValue);
  cudaGetLastError();
}

}  // namespace
}  // namespace halftone::testing
