// Asks for a CUDA device and prints why there is none.
#include <cstdio>

#include "halftone/kernels/device_backend.h"

int main() {
  const auto backend = halftone::kernels::OpenCuda(0);
  std::printf("%s\n", backend.ok() ? "opened" : backend.status().ToString().c_str());
}
