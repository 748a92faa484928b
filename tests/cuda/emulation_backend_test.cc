// CudaBackend where a real device cannot be made to misbehave: no driver, old devices, two devices,
// work that waits, failing work.
#include <gtest/gtest.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "halftone/core/alloc_counter.h"
#include "halftone/kernels/cuda/runtime/backend.h"
#include "halftone/kernels/device_backend.h"
#include "halftone/kernels/kernel.h"
#include "halftone/tests/cuda/test_kernels.h"
#include "halftone/tests/cuda_emulation/control.h"
#include "halftone/tests/support/allocation_hook.h"

namespace halftone::cuda {
namespace {

using emulation::Options;
using emulation::ScopedOptions;

Options Changed(void (*change)(Options&)) {
  Options options = emulation::GetOptions();
  change(options);
  return options;
}

// The error of a device that no test has opened before: those are kept.
absl::Status OpenError(int index) { return kernels::OpenCuda(index).status(); }

std::unique_ptr<CudaBackend> Open(int index = 0) {
  auto opened = CudaBackend::Open(index);
  EXPECT_TRUE(opened.ok()) << Message(opened.status());
  return std::move(opened).value();
}

TEST(EmulatedOpenCuda, SaysThatThereIsNoDriver) {
  const ScopedOptions options(Changed([](Options& o) { o.no_driver = true; }));
  const absl::Status error = OpenError(3);
  EXPECT_TRUE(absl::IsFailedPrecondition(error));
  EXPECT_EQ(Message(error), "device cuda:3: no NVIDIA driver is installed");
}

TEST(EmulatedOpenCuda, SaysThatThereIsNoDevice) {
  const ScopedOptions options(Changed([](Options& o) { o.device_count = 0; }));
  const absl::Status error = OpenError(3);
  EXPECT_TRUE(absl::IsInvalidArgument(error));
  EXPECT_EQ(Message(error), "device cuda:3: no CUDA device is in this machine");
}

TEST(EmulatedOpenCuda, NamesTheDevicesThereAre) {
  EXPECT_EQ(Message(OpenError(3)), "device cuda:3: no such device; expected cuda:0");
  const ScopedOptions options(Changed([](Options& o) { o.device_count = 2; }));
  for (int index : {2, -1}) {
    const absl::Status error = OpenError(index);
    EXPECT_TRUE(absl::IsInvalidArgument(error));
    EXPECT_EQ(Message(error),
              Concat("device cuda:", index, ": no such device; expected cuda:0..cuda:1"));
  }
}

TEST(EmulatedOpenCuda, RefusesDevicesThatAreTooOld) {
  const ScopedOptions options(Changed([](Options& o) {
    o.device_count = 4;
    o.compute_major = 7;
    o.compute_minor = 5;
  }));
  const absl::Status error = OpenError(3);
  EXPECT_TRUE(absl::IsFailedPrecondition(error));
  EXPECT_EQ(Message(error),
            "device cuda:3: Emulated CUDA device has compute capability 7.5; "
            "expected 8.0 or newer");
}

TEST(EmulatedBackend, NamesTheArchitecture) {
  const ScopedOptions options(Changed([](Options& o) {
    o.compute_major = 9;
    o.compute_minor = 0;
  }));
  const auto backend = Open();
  EXPECT_EQ(backend->description(), "Emulated CUDA device, sm_90, cuda:0");
  const kernels::KernelRegistry registry;
  EXPECT_EQ(backend->MakeTarget(registry)->name(), "cuda-sm90");
}

// Work that waits for its turn, as on a real device.
class EmulatedLazyBackend : public ::testing::Test {
 protected:
  ScopedOptions options_{Changed([](Options& o) { o.lazy = true; })};
  std::unique_ptr<CudaBackend> backend_ = Open();
};

TEST_F(EmulatedLazyBackend, PinnedCopiesDoNotWait) {
  const auto device = backend_->Allocate(sizeof(int));
  const auto from = backend_->AllocatePinned(sizeof(int)),
             to = backend_->AllocatePinned(sizeof(int));
  auto* const in = static_cast<int*>((*from)->data());
  auto* const out = static_cast<int*>((*to)->data());
  const auto event = backend_->NewEvent();
  *in = 5;
  *out = 0;
  emulation::ResetStatistics();
  ASSERT_EQ(backend_->CopyToDevice((*device)->data(), in, sizeof(int)), absl::OkStatus());
  ASSERT_EQ(backend_->CopyToHost(out, (*device)->data(), sizeof(int)), absl::OkStatus());
  ASSERT_EQ(backend_->Record(**event), absl::OkStatus());
  EXPECT_EQ(*out, 0);
  EXPECT_EQ(emulation::GetStatistics().host_synchronisations, 0u);
  ASSERT_EQ((*event)->Wait(), absl::OkStatus());
  EXPECT_EQ(*out, 5);
}

TEST_F(EmulatedLazyBackend, UploadIsDoneWithWhateverMemoryItReads) {
  const auto device = backend_->Allocate(sizeof(int));
  const auto pinned = backend_->AllocatePinned(sizeof(int));
  int pageable = 0, result = 0;
  for (int* from : {&pageable, static_cast<int*>((*pinned)->data())}) {
    *from = 7;
    ASSERT_EQ(backend_->Upload((*device)->data(), from, sizeof(int)), absl::OkStatus());
    *from = 8;
    ASSERT_EQ(backend_->Download(&result, (*device)->data(), sizeof(int)), absl::OkStatus());
    EXPECT_EQ(result, 7);
  }
}

TEST_F(EmulatedLazyBackend, WhatFollowsFreedMemoryRunsBehindItsLastUse) {
  auto first = *backend_->Allocate(sizeof(int));
  const auto pinned = backend_->AllocatePinned(2 * sizeof(int));
  auto* const values = static_cast<int*>((*pinned)->data());
  values[0] = 1;
  values[1] = 2;
  const auto kept = backend_->Allocate(sizeof(int));
  ASSERT_EQ(backend_->CopyToDevice(first->data(), &values[0], sizeof(int)), absl::OkStatus());
  const kernels::DeviceCopySegment segment{(*kept)->data(), first->data(), sizeof(int)};
  ASSERT_EQ(backend_->CopySegments({&segment, 1}, nullptr, backend_->stream()), absl::OkStatus());
  void* const before = first->data();
  first.reset();
  first = *backend_->Allocate(sizeof(int));
  ASSERT_EQ(first->data(), before);
  ASSERT_EQ(backend_->CopyToDevice(first->data(), &values[1], sizeof(int)), absl::OkStatus());
  int result = 0;
  ASSERT_EQ(backend_->Download(&result, (*kept)->data(), sizeof(int)), absl::OkStatus());
  EXPECT_EQ(result, 1);
}

TEST_F(EmulatedLazyBackend, ReleaseWaitsForTheWorkOfWhatItGivesBack) {
  auto device = *backend_->Allocate(sizeof(int));
  const auto pinned = backend_->AllocatePinned(sizeof(int));
  ASSERT_EQ(backend_->CopyToHost((*pinned)->data(), device->data(), sizeof(int)), absl::OkStatus());
  device.reset();
  EXPECT_EQ(backend_->ReleaseCached(), absl::OkStatus());
  EXPECT_EQ(emulation::LastReport(), "");
  EXPECT_EQ(backend_->memory_stats().cached_bytes, 0);
}

TEST(EmulatedBackend, AFullDeviceGetsItsCacheBack) {
  const ScopedOptions options(Changed([](Options& o) { o.memory_bytes = size_t{8} << 20; }));
  const auto backend = Open();
  { const auto memory = backend->Allocate(size_t{5} << 20); }
  const auto first = backend->Allocate(size_t{4} << 20);  // the piece of six, cut
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(backend->memory_stats().device_allocations, 1);
  const auto refused = backend->Allocate(size_t{3} << 20);
  EXPECT_EQ(Message(refused.status()),
            "device cuda:0: out of memory: 3145728 bytes asked for, 4194304 given out; "
            "the device has 8388608");
  {
    const auto small = backend->Allocate(100);
    EXPECT_TRUE(small.ok());
  }
  EXPECT_EQ(backend->memory_stats().device_allocations, 2);
}

TEST(EmulatedBackend, SaysWhenPageLockedMemoryRunsOut) {
  const auto backend = Open();
  const auto kept = backend->AllocatePinned(64);
  const auto refused = backend->AllocatePinned(size_t{1} << 60);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_EQ(Message(refused.status()),
            "device cuda:0: out of page-locked host memory: 1152921504606846976 bytes asked for, "
            "64 given out");
}

TEST(EmulatedBackend, FailedWorkIsReportedByEveryCallThatFollows) {
  const ScopedOptions options(emulation::GetOptions());
  const auto backend = Open();
  const auto event = backend->NewEvent();
  const auto graph = backend->Capture([](void*) { return absl::OkStatus(); });
  auto memory = backend->Allocate(64);
  int on_host = 0;
  EXPECT_NE(testing::LaunchFill(&on_host, 1, 1, static_cast<cudaStream_t>(backend->stream())),
            cudaSuccess);
  const auto text = [](const char* call) {
    return Concat("device cuda:0: ", call, ": cudaErrorIllegalAddress (",
                  cudaGetErrorString(cudaErrorIllegalAddress), ")");
  };
  EXPECT_EQ(Message((*event)->Wait()), text("cudaEventQuery"));
  EXPECT_EQ(Message(backend->Synchronize()), text("cudaStreamSynchronize"));
  EXPECT_EQ(Message(backend->Launch(**graph)), text("cudaGraphLaunch"));
  EXPECT_EQ(Message(backend->Upload((*memory)->data(), &on_host, 4)), text("cudaMemcpyAsync"));
  EXPECT_EQ(Message(backend->Allocate(4 << 20).status()), text("cudaMalloc"));
  EXPECT_EQ(Message(backend->NewEvent().status()), text("cudaEventCreate"));
  EXPECT_EQ(Message(backend->ReleaseCached()), text("cudaStreamSynchronize"));
}

TEST(EmulatedBackend, AllocatingInsideACaptureIsAnError) {
  const auto backend = Open();
  const auto graph = backend->Capture([&](void*) { return backend->Allocate(1 << 20).status(); });
  EXPECT_FALSE(graph.ok());
  // Both the allocator and capturing go on.
  EXPECT_TRUE(backend->Allocate(1 << 20).ok());
  EXPECT_TRUE(backend->Capture([](void*) { return absl::OkStatus(); }).ok());
}

TEST(EmulatedBackend, OtherThreadsAllocateDuringACapture) {
  const auto backend = Open();
  const auto graph = backend->Capture([&](void*) {
    absl::Status status;
    std::thread([&] { status = backend->Allocate(1 << 20).status(); }).join();
    return status;
  });
  EXPECT_TRUE(graph.ok()) << Message(graph.status());
}

TEST(EmulatedBackend, EachThreadReachesEachDevice) {
  const ScopedOptions options(Changed([](Options& o) { o.device_count = 2; }));
  const auto first = Open(0), second = Open(1);
  EXPECT_EQ(second->description(), "Emulated CUDA device, sm_80, cuda:1");
  const auto round_trip = [](CudaBackend& backend, int value) {
    const auto memory = backend.Allocate(2 * sizeof(int));
    int* const at = static_cast<int*>((*memory)->data());
    EXPECT_EQ(backend.Upload(at, &value, sizeof(value)), absl::OkStatus());
    void* const stream = backend.stream();
    const kernels::DeviceCopySegment segment{at + 1, at, sizeof(int)};
    EXPECT_EQ(backend.CopySegments({&segment, 1}, nullptr, stream), absl::OkStatus());
    int result = 0;
    EXPECT_EQ(backend.Download(&result, at + 1, sizeof(result)), absl::OkStatus());
    EXPECT_EQ(result, value);
  };
  round_trip(*first, 1);
  round_trip(*second, 2);
  round_trip(*first, 3);
  std::thread([&] { round_trip(*second, 4); }).join();
}

TEST(EmulatedBackend, HostAllocationsOfTheRuntimeAreNotTheSteps) {
  if (!testing::AllocationHookInstalled()) GTEST_SKIP() << "no counts under sanitizers";
  const auto backend = Open();
  const auto pinned = backend->AllocatePinned(64), device = backend->Allocate(64);
  const auto graph = backend->Capture([](void*) { return absl::OkStatus(); });
  const auto event = backend->NewEvent();
  const AllocationCounter counter;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(backend->CopyToDevice((*device)->data(), (*pinned)->data(), 64), absl::OkStatus());
    EXPECT_EQ(backend->Launch(**graph), absl::OkStatus());
    EXPECT_EQ(backend->CopyToHost((*pinned)->data(), (*device)->data(), 64), absl::OkStatus());
    EXPECT_EQ(backend->Record(**event), absl::OkStatus());
    EXPECT_EQ((*event)->Wait(), absl::OkStatus());
  }
  EXPECT_EQ(counter.count(), 0);
  // The hook is there, and the emulated runtime allocates.
  EXPECT_GT(counter.paused_count(), 0);
}

}  // namespace
}  // namespace halftone::cuda
