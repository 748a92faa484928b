// What `device_kernels` times: kernels that move memory, and products.
#pragma once

#include <string>
#include <vector>

#include "halftone/core/dtype.h"
#include "halftone/core/status.h"

namespace halftone::benchmarks {

struct DeviceCase {
  std::string name;           // "softmax/1024", "matmul/gpt2_fc1/grad_weight"
  std::string inputs, nodes;  // as ParseKernelCase takes them
  DType dtype;
  bool is_product = false;  // judged by its arithmetic, not by the bytes that it moves
};

// Each family that moves memory, in a size that moves about `bytes` (one row at least) by the cost that the
// op's record states; "copy" is the first, in f16. Errors: those of ParseKernelCase.
absl::StatusOr<std::vector<DeviceCase>> TrafficCases(double bytes);

// Products of GPT-2 small at 8 x 1,024 tokens, ResNet-50 at 64 images and others, each in its three directions, and
// attention both ways. Every extent is multiplied by `scale`, 0..1. Convolutions, whose engines take long to choose,
// come last; of both f16 comes before f32 and variants come last.
std::vector<DeviceCase> ProductCases(double scale);

}  // namespace halftone::benchmarks
