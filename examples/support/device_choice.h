// The --device option of programs that train.
#pragma once

#include <string>

#include "halftone/core/device.h"

namespace halftone::example {

inline constexpr char kDeviceHelp[] =
    "cpu, cuda, cuda:N, or auto: the first CUDA device if there is one, else the CPU";

struct DeviceChoice {
  Device device;
  std::string name;  // "cpu"; of a CUDA device what it is: "NVIDIA H200, sm_90, cuda:0"
  std::string note;  // why `auto` is the CPU; empty otherwise
};

// Opens the device. Errors: InvalidArgument (no such choice), and those of kernels::OpenDevice.
absl::StatusOr<DeviceChoice> ChooseDevice(const std::string& text);

}  // namespace halftone::example
