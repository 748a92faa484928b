// Weights and data from an integer hash, the same in benchmarks/peers/torch_parity.py, so that a
// comparison with PyTorch needs no files beside its losses.
#pragma once

#include <cstdint>

#include "halftone/core/tensor.h"

namespace halftone::testing {

// Word `i` of stream `tag`; two rounds of xor-shift and multiply over a Weyl sequence.
inline uint32_t HashWord(uint32_t tag, uint32_t i) {
  uint32_t h = i * 2654435769u + tag * 2246822519u;
  h = (h ^ (h >> 16)) * 2146121005u;
  h = (h ^ (h >> 15)) * 2221713035u;
  return h ^ (h >> 16);
}

// f32 in [-bound, bound): 24 bits, scaled in f32.
inline Tensor HashUniform(uint32_t tag, const Shape& shape, float bound) {
  Tensor t = Tensor::Empty(DType::kF32, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const float u = static_cast<float>(HashWord(tag, static_cast<uint32_t>(i)) >> 8) * 0x1p-24f;
    t.data<float>()[i] = (2.0f * u - 1.0f) * bound;
  }
  return t;
}

inline Tensor HashLabels(uint32_t tag, int64_t count, uint32_t classes) {
  Tensor t = Tensor::Empty(DType::kI64, {count});
  for (int64_t i = 0; i < count; ++i)
    t.data<int64_t>()[i] = HashWord(tag, static_cast<uint32_t>(i)) % classes;
  return t;
}

}  // namespace halftone::testing
