#include "halftone/examples/support/blobs.h"

#include "halftone/core/philox.h"

namespace halftone::example {
namespace {

std::vector<Tensor> Points(int64_t step, const Shape& shape, int64_t classes) {
  PhiloxStream random(static_cast<uint64_t>(step));
  const int64_t count = shape[0], features = shape.num_elements() / count;
  Tensor x = Tensor::Empty(DType::kF32, shape), y = Tensor::Empty(DType::kI64, {count});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t label = i % classes;
    PhiloxStream centre(static_cast<uint64_t>(1000003 + label));
    for (int64_t j = 0; j < features; ++j) {
      x.set(i * features + j, 2 * centre.Uniform() - 1 + 0.4 * (random.Uniform() - 0.5));
    }
    y.set(i, static_cast<double>(label));
  }
  return {x, y};
}

}  // namespace

std::vector<Tensor> Blobs(int64_t step, int64_t count, int64_t features, int64_t classes) {
  return Points(step, {count, features}, classes);
}

std::vector<Tensor> BlobImages(int64_t step, int64_t count, int64_t side, int64_t classes) {
  return Points(step, {count, 1, side, side}, classes);
}

}  // namespace halftone::example
