// CudaBackend through its interface.
#include "halftone/kernels/cuda/runtime/backend.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "halftone/kernels/cuda/runtime/multi_copy.h"
#include "halftone/kernels/device_backend.h"
#include "halftone/kernels/kernel.h"
#include "halftone/tests/cuda/range_log.h"

namespace halftone::cuda {
namespace {

using kernels::DeviceMemory;
using kernels::DeviceRunState;

class BackendTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = CudaBackend::Open(0);
    ASSERT_TRUE(opened.ok()) << Message(opened.status());
    backend_ = std::move(opened).value();
  }

  std::unique_ptr<DeviceMemory> New(size_t bytes) {
    auto memory = backend_->Allocate(bytes);
    EXPECT_TRUE(memory.ok()) << Message(memory.status());
    return std::move(memory).value();
  }
  std::unique_ptr<DeviceMemory> Pinned(size_t bytes) {
    auto memory = backend_->AllocatePinned(bytes);
    EXPECT_TRUE(memory.ok()) << Message(memory.status());
    return std::move(memory).value();
  }
  template <typename T>
  std::unique_ptr<DeviceMemory> Uploaded(const std::vector<T>& values) {
    auto memory = New(values.size() * sizeof(T));
    EXPECT_EQ(backend_->Upload(memory->data(), values.data(), memory->size()), absl::OkStatus());
    return memory;
  }
  template <typename T>
  std::vector<T> Downloaded(const DeviceMemory& memory) {
    std::vector<T> values(memory.size() / sizeof(T));
    EXPECT_EQ(backend_->Download(values.data(), memory.data(), memory.size()), absl::OkStatus());
    return values;
  }
  // Puts `to` = `from` on `stream`.
  absl::Status Copy(const DeviceMemory& to, const DeviceMemory& from, void* stream,
                    const DeviceRunState* gate = nullptr) {
    const kernels::DeviceCopySegment segment{to.data(), from.data(), from.size()};
    return backend_->CopySegments({&segment, 1}, gate, stream);
  }

  std::unique_ptr<CudaBackend> backend_;
};

using Ints = std::vector<int32_t>;

TEST_F(BackendTest, TellsWhatTheDeviceIs) {
  EXPECT_EQ(backend_->device(), Device::Cuda(0));
  const std::string& text = backend_->description();
  EXPECT_NE(text.find(", sm_"), std::string::npos) << text;
  EXPECT_EQ(text.substr(text.size() - 8), ", cuda:0") << text;
}

TEST_F(BackendTest, TargetIsToldFromTheRegistry) {
  kernels::KernelRegistry registry;
  kernels::KernelCandidate candidate;
  candidate.name = "cuda:native:add";
  candidate.op = "add";
  candidate.device = Device::Kind::kCuda;
  candidate.dtypes = {DType::kF32};
  candidate.create = [](const ir::Node&) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
    return Unimplemented("of a test");
  };
  registry.Add(std::move(candidate));
  const auto target = backend_->MakeTarget(registry);
  EXPECT_EQ(target->name().rfind("cuda-sm", 0), 0u) << target->name();
  EXPECT_TRUE(target->HasKernel("add", DType::kF32));
  EXPECT_FALSE(target->HasKernel("add", DType::kF16));
  EXPECT_FALSE(target->CanRun("sub"));
  EXPECT_TRUE(target->PrefersChannelsLast());
  std::string reason;
  EXPECT_EQ(target->PreferredLowType(&reason), DType::kBF16);
  EXPECT_EQ(reason, "tensor cores; bf16 needs no loss scaling");
}

TEST_F(BackendTest, MovesDataThereAndBack) {
  const Ints values = {1, -2, 3};
  const auto memory = Uploaded(values);
  EXPECT_EQ(Downloaded<int32_t>(*memory), values);
  const auto from = Pinned(memory->size()), to = Pinned(memory->size());
  std::memset(from->data(), 5, from->size());
  ASSERT_EQ(backend_->CopyToDevice(memory->data(), from->data(), memory->size()), absl::OkStatus());
  ASSERT_EQ(backend_->CopyToHost(to->data(), memory->data(), memory->size()), absl::OkStatus());
  ASSERT_EQ(backend_->Synchronize(), absl::OkStatus());
  EXPECT_EQ(std::memcmp(to->data(), from->data(), to->size()), 0);
}

TEST_F(BackendTest, NothingIsMemoryToo) {
  const auto memory = New(0), pinned = Pinned(0);
  EXPECT_EQ(memory->data(), nullptr);
  EXPECT_EQ(pinned->data(), nullptr);
  EXPECT_EQ(backend_->Upload(memory->data(), nullptr, 0), absl::OkStatus());
  EXPECT_EQ(backend_->Download(nullptr, memory->data(), 0), absl::OkStatus());
  EXPECT_EQ(backend_->CopySegments({}, nullptr, backend_->stream()), absl::OkStatus());
  EXPECT_EQ(backend_->memory_stats().allocations, 0);
}

TEST_F(BackendTest, CountsMemory) {
  auto a = New(1000);
  auto pinned = Pinned(100);
  auto stats = backend_->memory_stats();
  EXPECT_EQ(stats.allocations, 1);
  EXPECT_EQ(stats.device_allocations, 1);
  EXPECT_EQ(stats.live_bytes, 1024);
  EXPECT_EQ(stats.pinned_bytes, 100);
  void* const before = a->data();
  a.reset();
  pinned.reset();
  a = New(900);
  EXPECT_EQ(a->data(), before);
  stats = backend_->memory_stats();
  EXPECT_EQ(stats.device_allocations, 1);
  EXPECT_EQ(stats.pinned_bytes, 0);
  a.reset();
  EXPECT_GT(backend_->memory_stats().cached_bytes, 0);
  ASSERT_EQ(backend_->ReleaseCached(), absl::OkStatus());
  EXPECT_EQ(backend_->memory_stats().cached_bytes, 0);
}

TEST_F(BackendTest, ALimitNamesItself) {
  backend_->set_memory_limit(1 << 20);
  const auto kept = New(4096);
  const auto refused = backend_->Allocate(1 << 20);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_EQ(Message(refused.status()),
            "device cuda:0: out of memory: 1048576 bytes asked for, 4096 given out; "
            "the limit is 1048576");
  EXPECT_TRUE(backend_->Allocate(4096).ok());
}

TEST_F(BackendTest, AFullDeviceSaysWhatItHas) {
  const auto kept = New(4096);
  const auto refused = backend_->Allocate(size_t{1} << 50);
  EXPECT_TRUE(absl::IsResourceExhausted(refused.status()));
  EXPECT_EQ(Message(refused.status())
                .rfind("device cuda:0: out of memory: 1125899906842624 bytes asked for, "
                       "4096 given out; the device has ",
                       0),
            0u)
      << Message(refused.status());
  // The failure is over with.
  const auto copy = New(4096);
  EXPECT_EQ(Copy(*copy, *kept, backend_->stream()), absl::OkStatus());
}

TEST_F(BackendTest, CopiesManySegments) {
  constexpr int kCount = 300;  // three launches
  Ints values(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = i * i;
  const auto from = Uploaded(values), to = Uploaded(Ints(kCount, -1));
  std::vector<kernels::DeviceCopySegment> segments;
  for (int i = 0; i < kCount; ++i) {
    segments.push_back({static_cast<int32_t*>(to->data()) + (kCount - 1 - i),
                        static_cast<const int32_t*>(from->data()) + i, sizeof(int32_t)});
  }
  ASSERT_EQ(backend_->CopySegments(segments, nullptr, backend_->stream()), absl::OkStatus());
  const Ints reversed(values.rbegin(), values.rend());
  EXPECT_EQ(Downloaded<int32_t>(*to), reversed);
}

TEST_F(BackendTest, AFaultKeepsSegmentsAsTheyWere) {
  const auto from = Uploaded(Ints{1, 2}), to = Uploaded(Ints{7, 8});
  const auto gate = Uploaded(std::vector<DeviceRunState>{{.fault_id = 3}});
  const auto* const state = static_cast<const DeviceRunState*>(gate->data());
  ASSERT_EQ(Copy(*to, *from, backend_->stream(), state), absl::OkStatus());
  EXPECT_EQ(Downloaded<int32_t>(*to), (Ints{7, 8}));
  const DeviceRunState fine;
  ASSERT_EQ(backend_->Upload(gate->data(), &fine, sizeof(fine)), absl::OkStatus());
  ASSERT_EQ(Copy(*to, *from, backend_->stream(), state), absl::OkStatus());
  EXPECT_EQ(Downloaded<int32_t>(*to), (Ints{1, 2}));
}

TEST_F(BackendTest, CapturedWorkRunsAtEachLaunchWithWhatIsThereThen) {
  const auto from = Uploaded(Ints{1, 2, 3}), to = Uploaded(Ints{0, 0, 0});
  const auto graph = backend_->Capture([&](void* stream) { return Copy(*to, *from, stream); });
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  EXPECT_EQ(Downloaded<int32_t>(*to), (Ints{0, 0, 0}));
  for (const Ints& values : {Ints{1, 2, 3}, Ints{4, 5, 6}}) {
    ASSERT_EQ(backend_->Upload(from->data(), values.data(), from->size()), absl::OkStatus());
    ASSERT_EQ(backend_->Launch(**graph), absl::OkStatus());
    EXPECT_EQ(Downloaded<int32_t>(*to), values);
  }
}

TEST_F(BackendTest, AnErrorInsideACaptureEndsIt) {
  const auto from = Uploaded(Ints{1}), to = Uploaded(Ints{0});
  const auto failed = backend_->Capture([&](void* stream) {
    EXPECT_EQ(Copy(*to, *from, stream), absl::OkStatus());
    return InvalidArgument("no such kernel");
  });
  EXPECT_EQ(Message(failed.status()), "no such kernel");
  const auto graph = backend_->Capture([&](void* stream) { return Copy(*to, *from, stream); });
  ASSERT_TRUE(graph.ok()) << Message(graph.status());
  ASSERT_EQ(backend_->Launch(**graph), absl::OkStatus());
  EXPECT_EQ(Downloaded<int32_t>(*to), Ints{1});
}

TEST_F(BackendTest, EventsWaitForTheWorkBeforeThem) {
  const auto event = backend_->NewEvent();
  ASSERT_TRUE(event.ok()) << Message(event.status());
  EXPECT_EQ((*event)->Wait(), absl::OkStatus());
  const auto from = Uploaded(Ints{9});
  const auto to = Pinned(sizeof(int32_t));
  ASSERT_EQ(backend_->CopyToHost(to->data(), from->data(), to->size()), absl::OkStatus());
  ASSERT_EQ(backend_->Record(**event), absl::OkStatus());
  ASSERT_EQ((*event)->Wait(), absl::OkStatus());
  EXPECT_EQ(*static_cast<const int32_t*>(to->data()), 9);
}

TEST_F(BackendTest, RangesNest) {
  const testing::RangeLog log;
  backend_->BeginRange("step");
  backend_->BeginRange("forward");
  backend_->EndRange();
  backend_->EndRange();
  EXPECT_EQ(log.text(), "step( forward( ) ) ");
}

TEST(CheckDriver, TellsItsFailuresApart) {
  EXPECT_EQ(CheckDriver(cudaSuccess, 13000, 13000), absl::OkStatus());
  const auto error = [](cudaError_t answer, int driver) {
    const absl::Status status = CheckDriver(answer, driver, 13000);
    EXPECT_TRUE(absl::IsFailedPrecondition(status));
    return Message(status);
  };
  EXPECT_EQ(error(cudaErrorInsufficientDriver, 0), "no NVIDIA driver is installed");
  EXPECT_EQ(error(cudaErrorInsufficientDriver, 12080),
            "the NVIDIA driver is too old: it runs CUDA 12.8; expected 13.0 or newer");
  EXPECT_EQ(error(cudaErrorInitializationError, 13000),
            Concat("the NVIDIA driver does not start: cudaGetDeviceCount: "
                   "cudaErrorInitializationError (",
                   cudaGetErrorString(cudaErrorInitializationError), ")"));
}

TEST(OpenCuda, KeepsOneBackendADevice) {
  const auto first = kernels::OpenCuda(0), second = kernels::OpenCuda(0);
  ASSERT_TRUE(first.ok()) << Message(first.status());
  ASSERT_TRUE(second.ok()) << Message(second.status());
  EXPECT_EQ(*first, *second);
}

TEST(OpenCuda, ThreadsGetTheSameBackend) {
  kernels::DeviceBackend* seen[8] = {};
  std::vector<std::thread> threads;
  for (kernels::DeviceBackend*& backend : seen) {
    threads.emplace_back([&backend] { backend = *kernels::OpenCuda(0); });
  }
  // Looking for kernels meanwhile is safe.
  (void)kernels::KernelRegistry::Global().Candidates("add", Device::Kind::kCpu);
  for (std::thread& thread : threads) thread.join();
  for (const kernels::DeviceBackend* backend : seen) EXPECT_EQ(backend, seen[0]);
}

TEST(OpenCuda, RegistersItsKernelsOnce) {
  ASSERT_TRUE(kernels::OpenCuda(0).ok());
  const auto count = [] { return kernels::KernelRegistry::Global().All().size(); };
  const size_t before = count();
  ASSERT_TRUE(kernels::OpenCuda(0).ok());
  EXPECT_EQ(count(), before);
  EXPECT_EQ(
      kernels::KernelRegistry::Global().Candidates("loss_scale_update", Device::Kind::kCuda).size(),
      1u);
}

TEST(OpenCuda, RefusesADeviceThatIsNotThere) {
  for (int index : {-1, 99}) {
    const auto opened = kernels::OpenCuda(index);
    EXPECT_TRUE(absl::IsInvalidArgument(opened.status()));
    EXPECT_EQ(Message(opened.status())
                  .rfind(Concat("device cuda:", index, ": no such device; expected cuda:0"), 0),
              0u)
        << Message(opened.status());
  }
}

}  // namespace
}  // namespace halftone::cuda
