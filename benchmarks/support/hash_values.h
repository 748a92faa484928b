// Weights and data from an integer hash, the same in benchmarks/peers/torch_parity.py, so that a
// comparison with PyTorch needs no files of them.
#pragma once

#include <cstdint>

#include "halftone/core/tensor.h"

namespace halftone::benchmarks {

// Word `i` of stream `tag`; two rounds of xor-shift and multiply over a Weyl sequence.
inline uint32_t HashWord(uint32_t tag, uint32_t i) {
  uint32_t h = i * 2654435769u + tag * 2246822519u;
  h = (h ^ (h >> 16)) * 2146121005u;
  h = (h ^ (h >> 15)) * 2221713035u;
  return h ^ (h >> 16);
}

// f32 in [center - bound, center + bound): 24 bits, scaled in f32.
inline Tensor HashUniform(uint32_t tag, const Shape& shape, float bound, float center = 0) {
  Tensor t = Tensor::Empty(DType::kF32, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    const float u = static_cast<float>(HashWord(tag, static_cast<uint32_t>(i)) >> 8) * 0x1p-24f;
    t.data<float>()[i] = (2.0f * u - 1.0f) * bound + center;
  }
  return t;
}

// i64 labels below `classes`.
inline Tensor HashLabels(uint32_t tag, const Shape& shape, uint32_t classes) {
  Tensor t = Tensor::Empty(DType::kI64, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i)
    t.data<int64_t>()[i] = HashWord(tag, static_cast<uint32_t>(i)) % classes;
  return t;
}

// The same where one in `every` is not 0.
inline Tensor SparseHashLabels(uint32_t tag, const Shape& shape, uint32_t classes, uint32_t every) {
  Tensor t = HashLabels(tag, shape, classes - 1);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    int64_t& label = t.data<int64_t>()[i];
    label = HashWord(tag + 1000, static_cast<uint32_t>(i)) % every == 0 ? label + 1 : 0;
  }
  return t;
}

}  // namespace halftone::benchmarks
