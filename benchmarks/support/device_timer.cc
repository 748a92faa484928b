#include "halftone/benchmarks/support/device_timer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>
#include <vector>

#include "halftone/benchmarks/support/kernel_case.h"

namespace halftone::benchmarks {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kPatternElements = int64_t{1} << 18;
constexpr double kBlockSeconds = 5e-3;
constexpr double kAllBlocksSeconds = 0.2;
constexpr double kRecorded = 50;  // calls in one graph

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

class OnDevice {
 public:
  OnDevice(kernels::DeviceBackend& backend, const ir::Node& node, kernels::Kernel& kernel)
      : backend_(backend), node_(node), kernel_(kernel) {}

  absl::Status Allocate() {
    for (int i = 0; i < node_.num_inputs(); ++i) {
      HT_ASSIGN_OR_RETURN(void* const data, Reserve(node_.input_type(i).num_bytes()));
      inputs_.push_back(data);
      HT_RETURN_IF_ERROR(Fill(i, data));
    }
    for (int i = 0; i < node_.num_outputs(); ++i) {
      outputs_.push_back(InputBelow(i));
      if (outputs_.back() != nullptr) continue;
      HT_ASSIGN_OR_RETURN(outputs_.back(), Reserve(node_.output_type(i).num_bytes()));
    }
    HT_ASSIGN_OR_RETURN(workspace_, Reserve(static_cast<int64_t>(kernel_.workspace_bytes())));
    const kernels::DeviceRunState none;
    HT_ASSIGN_OR_RETURN(state_, Reserve(sizeof(none)));
    return backend_.Upload(state_, &none, sizeof(none));
  }

  // Puts the kernel's work on `stream`.
  absl::Status Run(void* stream) {
    kernels::RunState run;
    run.stream = stream;
    run.device = static_cast<kernels::DeviceRunState*>(state_);
    kernel_.Run({inputs_.data(), outputs_.data(), workspace_, &run, /*fault_id=*/1});
    return run.error;
  }

  absl::Status CheckFault() {
    kernels::DeviceRunState state;
    HT_RETURN_IF_ERROR(backend_.Download(&state, state_, sizeof(state)));
    if (state.fault_id == 0) return absl::OkStatus();
    return Internal(node_.Label(), ": index ", state.fault_value, " out of range");
  }

 private:
  absl::StatusOr<void*> Reserve(int64_t bytes) {
    HT_ASSIGN_OR_RETURN(auto memory, backend_.Allocate(static_cast<size_t>(bytes)));
    memory_.push_back(std::move(memory));
    return memory_.back()->data();
  }

  // The same values over and over, copied within the device: making all of them takes longer than the measurement.
  absl::Status Fill(int port, void* data) {
    const ir::ValueType& type = node_.input_type(port);
    const auto bytes = static_cast<size_t>(type.num_bytes());
    const Tensor pattern =
        OperandValues(node_, port, std::min(type.num_elements(), kPatternElements));
    size_t filled = pattern.num_bytes();
    HT_RETURN_IF_ERROR(backend_.Upload(data, pattern.raw(), filled));
    while (filled < bytes) {
      const size_t more = std::min(filled, bytes - filled);
      const kernels::DeviceCopySegment segment{static_cast<char*>(data) + filled, data, more};
      HT_RETURN_IF_ERROR(backend_.CopySegments({&segment, 1}, nullptr, backend_.stream()));
      filled += more;
    }
    return absl::OkStatus();
  }

  // Of an update: the input that output `i` is written over; else null.
  void* InputBelow(int i) const {
    if (!kernel_.keeps_state_on_fault()) return nullptr;
    for (const ir::InPlacePair& pair : node_.op().in_place) {
      if (pair.output == i) return const_cast<void*>(inputs_[static_cast<size_t>(pair.input)]);
    }
    return nullptr;
  }

  kernels::DeviceBackend& backend_;
  const ir::Node& node_;
  kernels::Kernel& kernel_;
  std::vector<std::unique_ptr<kernels::DeviceMemory>> memory_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  void *workspace_ = nullptr, *state_ = nullptr;
};

}  // namespace

absl::StatusOr<double> SecondsOnDevice(kernels::DeviceBackend& backend, const ir::Node& node,
                                       kernels::Kernel& kernel, int blocks) {
  OnDevice work(backend, node, kernel);
  HT_RETURN_IF_ERROR(work.Allocate());
  double once = 0;
  for (int i = 0; i < 2; ++i) {  // the first call may load code
    HT_RETURN_IF_ERROR(backend.Synchronize());
    const auto start = Clock::now();
    HT_RETURN_IF_ERROR(work.Run(backend.stream()));
    HT_RETURN_IF_ERROR(backend.Synchronize());
    once = SecondsSince(start);
  }
  const double calls = std::clamp(std::ceil(kBlockSeconds / 5 / once), 1.0, kRecorded);
  const double replays = std::clamp(std::ceil(kBlockSeconds / (calls * once)), 1.0, 100.0);
  HT_ASSIGN_OR_RETURN(const auto graph, backend.Capture([&](void* stream) {
    absl::Status status;
    for (int i = 0; i < static_cast<int>(calls); ++i) status.Update(work.Run(stream));
    return status;
  }));
  std::vector<double> times;
  double spent = 0;
  while (times.size() < static_cast<size_t>(blocks) &&
         (times.empty() || spent < kAllBlocksSeconds)) {
    HT_RETURN_IF_ERROR(backend.Synchronize());
    const auto start = Clock::now();
    for (int i = 0; i < static_cast<int>(replays); ++i) HT_RETURN_IF_ERROR(backend.Launch(*graph));
    HT_RETURN_IF_ERROR(backend.Synchronize());
    times.push_back(SecondsSince(start) / (calls * replays));
    spent += times.back() * calls * replays;
  }
  HT_RETURN_IF_ERROR(work.CheckFault());
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  const double median = times[times.size() / 2];
  if (!(median > 0)) return Internal(node.Label(), ": no time was measured");
  return median;
}

}  // namespace halftone::benchmarks
