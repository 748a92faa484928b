// A DeviceBackend over host memory whose work waits until somebody waits for it.
#pragma once

#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "halftone/kernels/device_backend.h"

namespace halftone::testing {

class FakeDevice : public kernels::DeviceBackend {
 public:
  class Memory : public kernels::DeviceMemory {
   public:
    explicit Memory(size_t size)
        : DeviceMemory(std::aligned_alloc(256, (size / 256 + 1) * 256), size) {}
    ~Memory() override { std::free(data_); }
  };
  class Pinned : public Memory {
   public:
    Pinned(FakeDevice* device, size_t size) : Memory(size), device_(device) {
      device_->live_pinned += size;
    }
    ~Pinned() override { device_->live_pinned -= size_; }

   private:
    FakeDevice* device_;
  };
  class Event : public kernels::DeviceEvent {
   public:
    explicit Event(FakeDevice* device) : device_(device) { ++device_->live_events; }
    ~Event() override { --device_->live_events; }
    absl::Status Wait() override {
      if (const auto hook = std::exchange(device_->before_wait, nullptr)) hook();
      while (device_->done_ < at) device_->RunOne();
      return device_->failure;
    }
    uint64_t at = 0;

   private:
    FakeDevice* device_;
  };

  const std::string& description() const override { return name_; }
  Device device() const override { return Device::Cuda(0); }
  std::unique_ptr<ir::Target> MakeTarget(const kernels::KernelRegistry&) const override {
    return nullptr;
  }
  absl::StatusOr<std::unique_ptr<kernels::DeviceMemory>> Allocate(size_t bytes) override {
    return std::unique_ptr<kernels::DeviceMemory>(new Memory(bytes));
  }
  absl::StatusOr<std::unique_ptr<kernels::DeviceMemory>> AllocatePinned(size_t bytes) override {
    return std::unique_ptr<kernels::DeviceMemory>(new Pinned(this, bytes));
  }
  kernels::DeviceMemoryStats memory_stats() const override { return {}; }
  void set_memory_limit(int64_t) override {}
  absl::Status ReleaseCached() override { return absl::OkStatus(); }
  void* stream() const override { return nullptr; }
  absl::Status CopyToDevice(void* to, const void* from, size_t bytes) override {
    Enqueue([=] { std::memcpy(to, from, bytes); });
    return absl::OkStatus();
  }
  absl::Status CopyToHost(void* to, const void* from, size_t bytes) override {
    return CopyToDevice(to, from, bytes);
  }
  absl::Status Upload(void* to, const void* from, size_t bytes) override {
    std::string bytes_now(static_cast<const char*>(from), bytes);
    Enqueue([to, bytes_now] { std::memcpy(to, bytes_now.data(), bytes_now.size()); });
    return absl::OkStatus();
  }
  absl::Status Download(void* to, const void* from, size_t bytes) override {
    HT_RETURN_IF_ERROR(Synchronize());
    std::memcpy(to, from, bytes);
    ++downloads;
    return absl::OkStatus();
  }
  absl::Status CopySegments(absl::Span<const kernels::DeviceCopySegment>,
                            const kernels::DeviceRunState*, void*) override {
    return absl::OkStatus();
  }
  absl::StatusOr<std::unique_ptr<kernels::DeviceEvent>> NewEvent() override {
    return std::unique_ptr<kernels::DeviceEvent>(new Event(this));
  }
  absl::Status Record(kernels::DeviceEvent& event) override {
    static_cast<Event&>(event).at = done_ + queue_.size();
    return absl::OkStatus();
  }
  absl::Status Join(distributed::Communicator&) override { return absl::OkStatus(); }
  absl::Status Synchronize() override {
    while (!queue_.empty()) RunOne();
    return failure;
  }
  absl::StatusOr<std::unique_ptr<kernels::DeviceGraph>> Capture(
      absl::FunctionRef<absl::Status(void*)>) override {
    return Unimplemented("a fake records nothing");
  }
  absl::Status Launch(kernels::DeviceGraph&) override { return absl::OkStatus(); }
  void BeginRange(const char*) override {}
  void EndRange() override {}

  void Enqueue(std::function<void()> work) { queue_.push_back(std::move(work)); }
  size_t waiting() const { return queue_.size(); }

  absl::Status failure;               // what the work came to
  std::function<void()> before_wait;  // called once, by the next thread that waits for an event
  int downloads = 0;
  size_t live_pinned = 0;  // bytes
  int live_events = 0;

 private:
  void RunOne() {
    queue_.front()();
    queue_.pop_front();
    ++done_;
  }
  std::string name_ = "fake";
  std::deque<std::function<void()>> queue_;
  uint64_t done_ = 0;
};

}  // namespace halftone::testing
