// One variable on the host and on devices: who has the newest value, and who fetches it.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "halftone/graph/runtime/variable_storage.h"
#include "halftone/tests/runtime/fake_device.h"

namespace halftone::runtime {
namespace {

using testing::FakeDevice;

struct Copies {
  FakeDevice device;
  VariableStorage variable{DType::kF32,
                           Shape{2},
                           ir::VariableKind::kParameter,
                           true,
                           {ir::Initializer::Kind::kConstant, 1, 0}};
  DeviceCopy* copy = nullptr;

  Copies() {
    HT_CHECK(variable.Materialise(0, "w").ok(), "memory");
    copy = *variable.OnDevice(device);
  }
  void WriteOnDevice(float value) {
    float* const data = static_cast<float*>(copy->memory->data());
    data[0] = data[1] = value;
    variable.DeviceWrote(*copy);
  }
};

TEST(VariableCopies, ADeviceHasNoValueBeforeSomebodyBringsIt) {
  Copies c;
  EXPECT_NE(c.copy->version, c.variable.version());
  EXPECT_TRUE(c.variable.host_is_newest());
  EXPECT_EQ(*c.variable.OnDevice(c.device), c.copy);  // one place for good
}

TEST(VariableCopies, TheHostFetchesWhatADeviceWroteOnlyWhenRead) {
  Copies c;
  c.WriteOnDevice(5);
  EXPECT_FALSE(c.variable.host_is_newest());
  EXPECT_EQ(c.device.downloads, 0);
  EXPECT_EQ(c.variable.value().at(1), 5);
  EXPECT_EQ(c.variable.value().at(0), 5);
  EXPECT_EQ(c.device.downloads, 1);
}

TEST(VariableCopies, F02ADeviceStaysWithTheParentOfAFork) {
  Copies c;
  c.WriteOnDevice(5);
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status status = c.variable.FetchToHost();
    _exit(absl::IsFailedPrecondition(status) &&
                  Message(status) ==
                      "device cuda:0 was used before fork() and belongs to the parent; "
                      "fork before its first use, or start a new program "
                      "(multiprocessing: \"spawn\")"
              ? 0
              : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(c.variable.FetchToHost().ok());
}

TEST(VariableCopies, AssigningMakesTheDevicesValueStale) {
  Copies c;
  c.WriteOnDevice(5);
  ASSERT_TRUE(c.variable.Assign(Tensor::Full(DType::kF32, {2}, 7)).ok());
  EXPECT_NE(c.copy->version, c.variable.version());
  EXPECT_EQ(c.variable.value().at(0), 7);
  EXPECT_EQ(c.device.downloads, 0);
}

TEST(VariableCopies, SecondDeviceGetsTheValueThroughTheHost) {
  Copies c;
  FakeDevice other;
  DeviceCopy* const there = *c.variable.OnDevice(other);
  static_cast<float*>(there->memory->data())[0] = 3;
  static_cast<float*>(there->memory->data())[1] = 4;
  c.variable.DeviceWrote(*there);
  EXPECT_NE(c.copy->version, c.variable.version());
  EXPECT_EQ(c.variable.value().at(1), 4);
  EXPECT_EQ(other.downloads, 1);
  EXPECT_EQ(c.device.downloads, 0);
}

TEST(VariableCopies, AFailedFetchIsAnErrorAndTheLastValueStays) {
  Copies c;
  c.WriteOnDevice(5);
  c.device.failure = Internal("the device is gone");
  EXPECT_EQ(c.variable.FetchToHost().code(), absl::StatusCode::kInternal);
  EXPECT_EQ(c.variable.value().at(0), 1);
  EXPECT_FALSE(c.variable.host_is_newest());
}

}  // namespace
}  // namespace halftone::runtime
