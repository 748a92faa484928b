// Asks for a CUDA device and prints why there is none.
#include <cstdio>

#include "halftone/kernels/open_device.h"

int main() {
  const auto device = halftone::kernels::OpenDevice(halftone::Device::Cuda(0));
  std::printf("%s\n", device.ok() ? device->c_str() : device.status().ToString().c_str());
}
