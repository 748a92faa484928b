// The emulated device: capture and replay of graphs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "halftone/tests/cuda/device_memory.h"
#include "halftone/tests/cuda/test_kernels.h"
#include "halftone/tests/cuda_emulation/control.h"

namespace halftone::testing {
namespace {

using emulation::Options;
using emulation::ScopedOptions;
using emulation::ThreadOrder;

class EmulatedGraph : public ::testing::Test {
 protected:
  EmulatedGraph() {
    for (cudaStream_t* stream : {&stream_, &side_}) {
      CheckCuda(cudaStreamCreateWithFlags(stream, cudaStreamNonBlocking));
    }
    for (cudaEvent_t* event : {&fork_, &join_}) {
      CheckCuda(cudaEventCreateWithFlags(event, cudaEventDisableTiming));
    }
    CheckCuda(cudaDeviceSynchronize());
    emulation::ResetStatistics();
  }
  ~EmulatedGraph() override {
    cudaGetLastError();
    for (cudaEvent_t event : {fork_, join_}) CheckCuda(cudaEventDestroy(event));
    for (cudaStream_t stream : {stream_, side_}) CheckCuda(cudaStreamDestroy(stream));
  }

  void Begin(cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal) {
    ASSERT_EQ(cudaStreamBeginCapture(stream_, mode), cudaSuccess);
  }
  // Ends the capture, which must fail so.
  void ExpectEnd(cudaError_t error) {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), error);
    EXPECT_EQ(graph, nullptr);
    EXPECT_EQ(Status(), cudaStreamCaptureStatusNone);
  }
  cudaGraphExec_t EndAndInstantiate() {
    cudaGraph_t graph = nullptr;
    EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
    EXPECT_EQ(cudaGraphGetNodes(graph, nullptr, &num_nodes_), cudaSuccess);
    cudaGraphExec_t executable = nullptr;
    EXPECT_EQ(cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
    EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
    return executable;
  }
  cudaStreamCaptureStatus Status() {
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusInvalidated;
    EXPECT_EQ(cudaStreamIsCapturing(stream_, &status), cudaSuccess);
    return status;
  }
  // Work on side_ becomes part of the capture, and its end is waited for.
  void Fork() {
    ASSERT_EQ(cudaEventRecord(fork_, stream_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(side_, fork_, 0), cudaSuccess);
  }
  void Join() {
    ASSERT_EQ(cudaEventRecord(join_, side_), cudaSuccess);
    ASSERT_EQ(cudaStreamWaitEvent(stream_, join_, 0), cudaSuccess);
  }

  cudaStream_t stream_ = nullptr, side_ = nullptr;
  cudaEvent_t fork_ = nullptr, join_ = nullptr;
  size_t num_nodes_ = 0;
};

TEST_F(EmulatedGraph, ReplaysOnWhatMemoryHoldsThen) {
  const DeviceArray<int> x(std::vector{1, 2, 3}), y(std::vector{0, 0, 0});
  emulation::ResetStatistics();
  Begin();
  EXPECT_EQ(Status(), cudaStreamCaptureStatusActive);
  ASSERT_EQ(LaunchAddOne(y.data(), x.data(), 3, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(x.data(), y.data(), 12, cudaMemcpyDeviceToDevice, stream_),
            cudaSuccess);
  cudaGraphExec_t executable = EndAndInstantiate();
  EXPECT_EQ(num_nodes_, 2u);
  EXPECT_EQ(emulation::GetStatistics().kernels, 0u);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  EXPECT_EQ(x.Get(), (std::vector{4, 5, 6}));
  const emulation::Statistics statistics = emulation::GetStatistics();
  EXPECT_EQ(statistics.graph_launches, 3u);
  EXPECT_EQ(statistics.launches, 1u);
  EXPECT_EQ(statistics.kernels, 3u);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

TEST_F(EmulatedGraph, AnExecutableMayGoBeforeItsLaunchesRun) {
  Options options = emulation::GetOptions();
  options.lazy = true;
  const ScopedOptions scope(options);
  const DeviceArray<int> x(std::vector{0});
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  Begin();
  ASSERT_EQ(LaunchAddOne(x.data(), x.data(), 1, stream_), cudaSuccess);
  cudaGraphExec_t executable = EndAndInstantiate();
  ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(x.Get(), std::vector{1});
}

TEST_F(EmulatedGraph, NodesHaveTypes) {
  const DeviceArray<int> x(size_t{3});
  int* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(reinterpret_cast<void**>(&pinned), 12), cudaSuccess);
  Begin();
  ASSERT_EQ(cudaMemsetAsync(x.data(), 0, 12, stream_), cudaSuccess);
  ASSERT_EQ(LaunchFill(x.data(), 3, 1, stream_), cudaSuccess);
  ASSERT_EQ(cudaMemcpyAsync(pinned, x.data(), 12, cudaMemcpyDeviceToHost, stream_), cudaSuccess);
  ASSERT_EQ(cudaLaunchHostFunc(
                stream_, [](void* p) { ++*static_cast<int*>(p); }, pinned),
            cudaSuccess);
  cudaGraph_t graph = nullptr;
  ASSERT_EQ(cudaStreamEndCapture(stream_, &graph), cudaSuccess);
  cudaGraphNode_t nodes[5];
  size_t count = 5;
  ASSERT_EQ(cudaGraphGetNodes(graph, nodes, &count), cudaSuccess);
  ASSERT_EQ(count, 4u);
  std::vector<cudaGraphNodeType> types(4);
  for (int i = 0; i < 4; ++i) ASSERT_EQ(cudaGraphNodeGetType(nodes[i], &types[i]), cudaSuccess);
  EXPECT_EQ(types, (std::vector{cudaGraphNodeTypeMemset, cudaGraphNodeTypeKernel,
                                cudaGraphNodeTypeMemcpy, cudaGraphNodeTypeHost}));
  cudaGraphExec_t executable = nullptr;
  ASSERT_EQ(cudaGraphInstantiateWithFlags(&executable, graph, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  ASSERT_EQ(cudaStreamSynchronize(stream_), cudaSuccess);
  EXPECT_EQ(pinned[0], 2);
  EXPECT_EQ(pinned[2], 1);
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  EXPECT_EQ(cudaGraphDestroy(graph), cudaSuccess);
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST_F(EmulatedGraph, EventsForkAndJoin) {
  for (const ThreadOrder order :
       {ThreadOrder::kForward, ThreadOrder::kReverse, ThreadOrder::kRandom}) {
    Options options = emulation::GetOptions();
    options.order = order;
    const ScopedOptions scope(options);
    const DeviceArray<int> x(std::vector{0}), y(std::vector{0}), z(std::vector{0});
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    Begin();
    ASSERT_EQ(LaunchFill(x.data(), 1, 10, stream_), cudaSuccess);
    Fork();
    ASSERT_EQ(LaunchAddOne(y.data(), x.data(), 1, side_), cudaSuccess);
    Join();
    ASSERT_EQ(LaunchAddOne(z.data(), y.data(), 1, stream_), cudaSuccess);
    cudaGraphExec_t executable = EndAndInstantiate();
    EXPECT_EQ(num_nodes_, 3u);
    // The stream that joined is free again.
    ASSERT_EQ(LaunchFill(x.data(), 1, 1, side_), cudaSuccess);
    ASSERT_EQ(cudaStreamSynchronize(side_), cudaSuccess);
    ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
    EXPECT_EQ(z.Get(), std::vector{12});
    EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
  }
}

// Without an edge between two nodes the order of the capture means nothing.
TEST_F(EmulatedGraph, OtherOrdersShowAMissingEdge) {
  Options options = emulation::GetOptions();
  options.order = ThreadOrder::kReverse;
  const ScopedOptions scope(options);
  const DeviceArray<int> x(std::vector{0}), y(std::vector{0});
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  Begin();
  Fork();
  ASSERT_EQ(LaunchFill(x.data(), 1, 10, stream_), cudaSuccess);
  ASSERT_EQ(LaunchAddOne(y.data(), x.data(), 1, side_), cudaSuccess);
  Join();
  cudaGraphExec_t executable = EndAndInstantiate();
  ASSERT_EQ(cudaGraphLaunch(executable, stream_), cudaSuccess);
  EXPECT_EQ(y.Get(), std::vector{1});
  EXPECT_EQ(cudaGraphExecDestroy(executable), cudaSuccess);
}

TEST_F(EmulatedGraph, CallsThatInvalidateACapture) {
  const DeviceArray<int> x(std::vector{0});
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  void* p = nullptr;
  std::vector<int> pageable(1);
  const std::vector<std::function<cudaError_t()>> calls = {
      [&] { return cudaStreamSynchronize(stream_); },
      [&] { return cudaStreamQuery(stream_); },
      [&] { return cudaDeviceSynchronize(); },
      [&] { return cudaMalloc(&p, 8); },
      [&] { return cudaMallocHost(&p, 8); },
      [&] { return cudaMallocAsync(&p, 8, stream_); },
      [&] { return cudaFree(x.data()); },
      [&] { return cudaMemcpy(pageable.data(), x.data(), 4, cudaMemcpyDeviceToHost); },
      [&] {
        return cudaMemcpyAsync(pageable.data(), x.data(), 4, cudaMemcpyDeviceToHost, stream_);
      },
  };
  for (size_t i = 0; i < calls.size(); ++i) {
    Begin();
    EXPECT_EQ(calls[i](), cudaErrorStreamCaptureUnsupported) << i;
    EXPECT_EQ(Status(), cudaStreamCaptureStatusInvalidated) << i;
    EXPECT_EQ(LaunchFill(x.data(), 1, 1, stream_), cudaErrorStreamCaptureInvalidated) << i;
    ExpectEnd(cudaErrorStreamCaptureInvalidated);
  }
  EXPECT_EQ(x.Get(), std::vector{0});
}

TEST_F(EmulatedGraph, RelaxedCapturesAllowAllocation) {
  void* p = nullptr;
  Begin(cudaStreamCaptureModeRelaxed);
  ASSERT_EQ(cudaMalloc(&p, 8), cudaSuccess);
  ASSERT_EQ(cudaMemsetAsync(p, 0, 8, stream_), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(EndAndInstantiate()), cudaSuccess);
  EXPECT_EQ(cudaFree(p), cudaSuccess);
}

// Global captures forbid such calls in every thread, thread-local ones in their own.
TEST_F(EmulatedGraph, OtherThreads) {
  const auto allocate_elsewhere = [] {
    cudaError_t error = cudaSuccess;
    std::thread([&error] {
      void* p = nullptr;
      error = cudaMalloc(&p, 8);
      if (error == cudaSuccess) error = cudaFree(p);
    }).join();
    return error;
  };
  Begin(cudaStreamCaptureModeThreadLocal);
  EXPECT_EQ(allocate_elsewhere(), cudaSuccess);
  cudaError_t error = cudaSuccess;
  std::thread([&] {
    cudaGraph_t graph = nullptr;
    error = cudaStreamEndCapture(stream_, &graph);
  }).join();
  EXPECT_EQ(error, cudaErrorStreamCaptureWrongThread);
  EXPECT_EQ(cudaGraphExecDestroy(EndAndInstantiate()), cudaSuccess);
  Begin(cudaStreamCaptureModeGlobal);
  EXPECT_EQ(allocate_elsewhere(), cudaErrorStreamCaptureUnsupported);
  ExpectEnd(cudaErrorStreamCaptureInvalidated);
}

TEST_F(EmulatedGraph, UnjoinedWork) {
  const DeviceArray<int> x(std::vector{0});
  ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  Begin();
  Fork();
  ASSERT_EQ(LaunchFill(x.data(), 1, 10, side_), cudaSuccess);
  ExpectEnd(cudaErrorStreamCaptureUnjoined);
  // Nothing of it is left.
  EXPECT_EQ(cudaStreamSynchronize(side_), cudaSuccess);
  EXPECT_EQ(x.Get(), std::vector{0});
}

TEST_F(EmulatedGraph, WrongEnds) {
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream_, &graph), cudaErrorIllegalState);
  EXPECT_EQ(cudaStreamBeginCapture(nullptr, cudaStreamCaptureModeGlobal),
            cudaErrorStreamCaptureUnsupported);
  Begin();
  EXPECT_EQ(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeGlobal), cudaErrorIllegalState);
  Fork();
  EXPECT_EQ(cudaStreamEndCapture(side_, &graph), cudaErrorStreamCaptureUnmatched);
  ExpectEnd(cudaErrorStreamCaptureInvalidated);
}

TEST_F(EmulatedGraph, EventsAcrossTheBorderOfACapture) {
  ASSERT_EQ(cudaEventRecord(fork_, side_), cudaSuccess);
  Begin();
  EXPECT_EQ(cudaStreamWaitEvent(stream_, fork_, 0), cudaErrorStreamCaptureIsolation);
  ExpectEnd(cudaErrorStreamCaptureInvalidated);

  Begin();
  ASSERT_EQ(cudaEventRecord(fork_, stream_), cudaSuccess);
  EXPECT_EQ(cudaEventSynchronize(fork_), cudaErrorCapturedEvent);
  ExpectEnd(cudaErrorStreamCaptureInvalidated);

  Begin();
  ASSERT_EQ(cudaStreamBeginCapture(side_, cudaStreamCaptureModeGlobal), cudaSuccess);
  ASSERT_EQ(cudaEventRecord(fork_, stream_), cudaSuccess);
  EXPECT_EQ(cudaStreamWaitEvent(side_, fork_, 0), cudaErrorStreamCaptureMerge);
  ExpectEnd(cudaErrorStreamCaptureInvalidated);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(side_, &graph), cudaErrorStreamCaptureInvalidated);
}

TEST_F(EmulatedGraph, TheLegacyStreamWhileABlockingOneCaptures) {
  const DeviceArray<int> x(std::vector{0});
  cudaStream_t blocking = nullptr;
  ASSERT_EQ(cudaStreamCreate(&blocking), cudaSuccess);
  ASSERT_EQ(cudaStreamBeginCapture(blocking, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(LaunchFill(x.data(), 1, 1, nullptr), cudaErrorStreamCaptureImplicit);
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(blocking, &graph), cudaErrorStreamCaptureInvalidated);
  EXPECT_EQ(cudaStreamDestroy(blocking), cudaSuccess);
  // A non-blocking one has nothing to do with it.
  Begin();
  EXPECT_EQ(LaunchFill(x.data(), 1, 1, nullptr), cudaSuccess);
  EXPECT_EQ(cudaGraphExecDestroy(EndAndInstantiate()), cudaSuccess);
}

}  // namespace
}  // namespace halftone::testing
