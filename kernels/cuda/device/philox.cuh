// Philox4x32-10 in device code: the words of core/philox.h.
#pragma once

#include "halftone/kernels/cuda/device/device.cuh"

namespace halftone::cuda {

struct PhiloxWords {
  uint32_t v[4];
};

// PhiloxBlock(seed, run, group).
__device__ inline PhiloxWords PhiloxBlock(uint64_t seed, uint64_t run, uint64_t group) {
  auto c0 = static_cast<uint32_t>(group), c1 = static_cast<uint32_t>(group >> 32);
  auto c2 = static_cast<uint32_t>(run), c3 = static_cast<uint32_t>(run >> 32);
  auto key0 = static_cast<uint32_t>(seed), key1 = static_cast<uint32_t>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53} * c0, product1 = uint64_t{0xCD9E8D57} * c2;
    c0 = static_cast<uint32_t>(product1 >> 32) ^ c1 ^ key0;
    c1 = static_cast<uint32_t>(product1);
    c2 = static_cast<uint32_t>(product0 >> 32) ^ c3 ^ key1;
    c3 = static_cast<uint32_t>(product0);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return {{c0, c1, c2, c3}};
}

}  // namespace halftone::cuda
