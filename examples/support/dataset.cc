#include "halftone/examples/support/dataset.h"

#include <algorithm>
#include <numeric>

#include "halftone/core/io/idx.h"
#include "halftone/core/philox.h"

namespace halftone::example {
namespace {

// The compressed file if there is one, else the plain one.
absl::StatusOr<Tensor> ReadEither(const std::string& path) {
  absl::StatusOr<Tensor> tensor = io::ReadIdx(path + ".gz");
  if (absl::IsNotFound(tensor.status())) return io::ReadIdx(path);
  return tensor;
}

}  // namespace

absl::StatusOr<Dataset> Dataset::Load(const std::string& folder, const std::string& part,
                                      int64_t limit) {
  const std::string base = folder + "/" + part;
  Dataset data;
  HT_ASSIGN_OR_RETURN(data.images_, ReadEither(base + "-images-idx3-ubyte"));
  HT_ASSIGN_OR_RETURN(data.labels_, ReadEither(base + "-labels-idx1-ubyte"));
  const Shape& images = data.images_.shape();
  const Shape& labels = data.labels_.shape();
  if (data.images_.dtype() != DType::kU8 || images.rank() != 3 || images[0] == 0) {
    return InvalidArgument(base, "-images: got ", data.images_.TypeString(),
                           ", expected u8[N,H,W]");
  }
  if (data.labels_.dtype() != DType::kU8 || labels != Shape{images[0]}) {
    return InvalidArgument(base, "-labels: got ", data.labels_.TypeString(), ", expected u8[",
                           images[0], "]");
  }
  data.order_.resize(limit > 0 ? std::min(limit, images[0]) : images[0]);
  std::iota(data.order_.begin(), data.order_.end(), 0);
  return data;
}

void Dataset::Shuffle(uint64_t seed, uint64_t epoch) {
  std::iota(order_.begin(), order_.end(), 0);
  PhiloxStream random(seed, epoch);
  for (size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[random.Below(i)]);
}

std::vector<Tensor> Dataset::Batch(int64_t first, int64_t count) const {
  return Gather(
      absl::MakeConstSpan(order_).subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
}

std::vector<Tensor> Dataset::Gather(absl::Span<const int64_t> numbers) const {
  const auto count = static_cast<int64_t>(numbers.size());
  const Shape& all = images_.shape();
  const int64_t pixels = all[1] * all[2];
  Tensor images = Tensor::Empty(DType::kU8, {count, all[1], all[2]});
  Tensor labels = Tensor::Empty(DType::kI64, {count});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t from = numbers[static_cast<size_t>(i)];
    std::memcpy(images.data<uint8_t>() + i * pixels, images_.data<uint8_t>() + from * pixels,
                pixels);
    labels.data<int64_t>()[i] = labels_.data<uint8_t>()[from];
  }
  return {images, labels};
}

}  // namespace halftone::example
