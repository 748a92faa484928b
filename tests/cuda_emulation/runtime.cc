#include "halftone/tests/cuda_emulation/runtime.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "halftone/tests/cuda_emulation/fault_handler.h"

namespace halftone::emulation {
namespace {

constexpr size_t kRangeBytes = size_t{16} << 30;

Options OptionsFromEnvironment() {
  Options options;
  const char* order = std::getenv("HALFTONE_EMULATION_ORDER");
  if (order != nullptr && *order != 0) {
    if (std::strcmp(order, "reverse") == 0) {
      options.order = ThreadOrder::kReverse;
    } else if (std::strcmp(order, "random") == 0) {
      options.order = ThreadOrder::kRandom;
    } else if (std::strcmp(order, "forward") != 0) {
      std::fprintf(stderr, "HALFTONE_EMULATION_ORDER: '%s' is not forward, reverse or random\n",
                   order);
      std::abort();
    }
  }
  if (const char* const seed = std::getenv("HALFTONE_EMULATION_SEED")) {
    options.seed = std::strtoull(seed, nullptr, 10);
  }
  const auto is_set = [](const char* name) {
    const char* const value = std::getenv(name);
    return value != nullptr && std::strcmp(value, "1") == 0;
  };
  options.lazy = is_set("HALFTONE_EMULATION_LAZY");
  options.no_driver = is_set("HALFTONE_EMULATION_NO_DRIVER");
  return options;
}

}  // namespace

Runtime::Runtime() : options(OptionsFromEnvironment()), memory(kRangeBytes), devices(kMaxDevices) {
  for (int i = 0; i < kMaxDevices; ++i) {
    devices[i].legacy = std::make_shared<CUstream_st>();
    devices[i].legacy->device = i;
  }
  InstallFaultHandler();
}

Runtime& GetRuntime() {
  static Runtime& runtime = *new Runtime;
  return runtime;
}

int& Runtime::current() {
  static thread_local int device = 0;
  return device;
}

cudaError_t& Runtime::last_error() {
  static thread_local cudaError_t error = cudaSuccess;
  return error;
}

Device& Runtime::current_device() { return devices[current()]; }

cudaError_t Runtime::Admit() const {
  if (options.no_driver) return cudaErrorInsufficientDriver;
  if (options.device_count == 0) return cudaErrorNoDevice;
  if (in_host_function) return cudaErrorNotPermitted;
  return cudaSuccess;
}

bool Runtime::IsToFail(Call call) {
  uint64_t& left = calls_until_failure[static_cast<size_t>(call)];
  return left > 0 && --left == 0;
}

void Runtime::Report(const std::string& text) {
  report = text;
  std::fprintf(stderr, "emulated CUDA device: %s\n", text.c_str());
}

void Runtime::FailDevice(int device, cudaError_t error, const std::string& text) {
  Report(text);
  devices[device].sticky = error;
}

bool Runtime::IsPinned(const void* p) const {
  const uintptr_t address = reinterpret_cast<uintptr_t>(p);
  auto it = pinned.upper_bound(address);
  if (it == pinned.begin()) return false;
  --it;
  return address - it->first < it->second;
}

Options GetOptions() {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  return r.options;
}

void SetOptions(const Options& options) {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  for (int i = 0; i < kMaxDevices; ++i) r.RunDevice(i);
  r.options = options;
  r.memory.SetProtection(options.protect);
}

Statistics GetStatistics() {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  return r.statistics;
}

void ResetStatistics() {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  r.statistics = {};
}

void FailCall(Call call, uint64_t nth) {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  r.calls_until_failure[static_cast<size_t>(call)] = nth;
}

std::string LastReport() {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  return r.report;
}

void ClearErrors() {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  for (int i = 0; i < kMaxDevices; ++i) {
    for (const auto& stream : r.StreamsOf(i)) {
      stream->queue.clear();
      stream->done = stream->issued;
    }
    r.devices[i].sticky = cudaSuccess;
  }
  r.report.clear();
  std::fill(std::begin(r.calls_until_failure), std::end(r.calls_until_failure), 0);
  Runtime::last_error() = cudaSuccess;
}

size_t LiveDeviceBytes() {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  return r.memory.live_bytes();
}

size_t LiveDeviceAllocations() {
  Runtime& r = GetRuntime();
  const std::scoped_lock lock(r.mutex);
  return r.memory.live_allocations();
}

}  // namespace halftone::emulation
