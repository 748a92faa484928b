// LaunchIndexCheck: which index becomes the fault, and how many count.
#include "halftone/kernels/cuda/device/index_check.h"

#include <gtest/gtest.h>

#include <optional>
#include <type_traits>

#include "halftone/tests/cuda/device_memory.h"

namespace halftone::testing {
namespace {

using kernels::DeviceRunState;

constexpr int64_t kFaultId = 5;

struct Outcome {
  DeviceRunState state;
  int64_t counted;
};

template <typename Index>
Outcome Check(const std::vector<Index>& indices, int64_t bound, DeviceRunState before = {},
              std::optional<int64_t> ignored = std::nullopt) {
  const DeviceArray<Index> on_device(indices);
  const DeviceArray<DeviceRunState> state(std::vector<DeviceRunState>{before});
  const DeviceArray<int64_t> counted(std::vector<int64_t>{-1});
  cuda::IndexCheck check{on_device.data(), static_cast<int64_t>(indices.size()),
                         std::is_same_v<Index, int64_t>, bound};
  check.has_ignored = ignored.has_value();
  check.ignored = ignored.value_or(0);
  check.counted = counted.data();
  CheckCuda(cuda::LaunchIndexCheck(check, kFaultId, state.data(), nullptr));
  return {state.Get()[0], counted.Get()[0]};
}

void ExpectFault(const Outcome& outcome, int64_t value, int64_t bound, int64_t position) {
  EXPECT_EQ(outcome.state.fault_id, kFaultId);
  EXPECT_EQ(outcome.state.fault_value, value);
  EXPECT_EQ(outcome.state.fault_bound, bound);
  EXPECT_EQ(outcome.state.fault_position, position);
}

TEST(IndexCheckTest, AcceptsTheWholeRange) {
  for (size_t size : {0, 1, 31, 33, 1025, 5000}) {
    std::vector<int64_t> indices(size);
    for (size_t i = 0; i < size; ++i) indices[i] = static_cast<int64_t>(i % 7);
    const Outcome outcome = Check(indices, 7);
    EXPECT_EQ(outcome.state.fault_id, 0);
    EXPECT_EQ(outcome.counted, static_cast<int64_t>(size));
  }
}

TEST(IndexCheckTest, ReportsTheFirstBadIndexByPosition) {
  // Positions of one thread, of two warps, of the last pass.
  for (const auto& [first, second] : std::vector<std::pair<size_t, size_t>>{
           {0, 1}, {5, 1029}, {40, 41}, {1023, 1024}, {4999, 4999}}) {
    std::vector<int64_t> indices(5000, 2);
    indices[second] = 9;
    indices[first] = 8;
    const Outcome outcome = Check(indices, 8);
    ExpectFault(outcome, 8, 8, static_cast<int64_t>(first));
    EXPECT_EQ(outcome.counted, first == second ? 4999 : 4998);
  }
}

TEST(IndexCheckTest, NegativeIndicesAreBad) {
  ExpectFault(Check<int64_t>({0, -1}, 3), -1, 3, 1);
  ExpectFault(Check<int32_t>({0, -5, 7}, 3), -5, 3, 1);
  ExpectFault(Check<int64_t>({0, int64_t{1} << 40}, 3), int64_t{1} << 40, 3, 1);
  ExpectFault(Check<int64_t>({0}, 0), 0, 0, 0);
}

TEST(IndexCheckTest, IgnoredIndicesAreValidAndDoNotCount) {
  const Outcome outside = Check<int64_t>({1, -100, 2, -100, -100}, 3, {}, -100);
  EXPECT_EQ(outside.state.fault_id, 0);
  EXPECT_EQ(outside.counted, 2);
  const Outcome inside = Check<int32_t>({1, 1, 2}, 3, {}, 1);
  EXPECT_EQ(inside.state.fault_id, 0);
  EXPECT_EQ(inside.counted, 1);
}

TEST(IndexCheckTest, KeepsAnEarlierFault) {
  DeviceRunState before;
  before.fault_id = 2;
  before.fault_value = 40;
  before.fault_bound = 30;
  before.fault_position = 7;
  const Outcome outcome = Check<int64_t>({99}, 3, before);
  EXPECT_EQ(outcome.state.fault_id, 2);
  EXPECT_EQ(outcome.state.fault_value, 40);
  EXPECT_EQ(outcome.state.fault_bound, 30);
  EXPECT_EQ(outcome.state.fault_position, 7);
}

}  // namespace
}  // namespace halftone::testing
