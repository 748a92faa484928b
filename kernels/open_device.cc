#include "halftone/kernels/open_device.h"

#include "halftone/kernels/device_backend.h"

namespace halftone::kernels {

absl::StatusOr<std::string> OpenDevice(const Device& device) {
  if (device.kind != Device::Kind::kCuda) return device.ToString();
  HT_ASSIGN_OR_RETURN(const DeviceBackend* backend, OpenCuda(device.index));
  return backend->description();
}

}  // namespace halftone::kernels
