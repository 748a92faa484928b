// DCGAN for images of 64 x 64, as in the paper, or of another power of two from 8. Source: Radford et al., "Unsupervised representation learning with
// deep convolutional generative adversarial networks", 2016 (arXiv:1511.06434), section 3 and
// figure 1.
#pragma once

#include <cstdint>

#include "halftone/halftone.h"

namespace halftone::models {

// Both nets go between 4 x 4 and half the image by doubling: how many widths the 4 x 4 end has. 0:
// the extent is none that doubling gives.
inline int64_t DcganWidest(int64_t extent) {
  return extent >= 8 && (extent & (extent - 1)) == 0 ? extent / 8 : 0;
}
inline absl::Status DcganExtentError(const char* model, int64_t extent) {
  return InvalidArgument(model, ": extent is ", extent, "; expected a power of two from 8");
}

// Shapes: noise [N,latent,1,1] -> images [N,channels,extent,extent] in (-1, 1).
// Error (kept in status()): an extent that is no power of two from 8.
class DcganGenerator : public nn::Sequential {
 public:
  explicit DcganGenerator(int64_t latent = 100, int64_t width = 64, int64_t channels = 3,
                          int64_t extent = 64) {
    const int64_t widest = DcganWidest(extent);
    if (widest == 0) {
      Fail(DcganExtentError("DcganGenerator", extent));
      return;
    }
    emplace<nn::ConvTranspose2d>(latent, widest * width, 4,
                                 nn::ConvTranspose2d::Options{.bias = false});
    const nn::ConvTranspose2d::Options doubles{.stride = 2, .padding = 1, .bias = false};
    for (int64_t times = widest; times > 1; times /= 2) {
      emplace<nn::BatchNorm2d>(times * width);
      emplace<nn::ReLU>();
      emplace<nn::ConvTranspose2d>(times * width, times * width / 2, 4, doubles);
    }
    emplace<nn::BatchNorm2d>(width);
    emplace<nn::ReLU>();
    emplace<nn::ConvTranspose2d>(width, channels, 4, doubles);
    emplace<nn::Tanh>();
  }
};

// Shapes: images [N,channels,extent,extent] -> scores [N], whose sigmoid is how real they are.
// Error (kept in status()): an extent that is no power of two from 8.
class DcganDiscriminator : public nn::Sequential {
 public:
  explicit DcganDiscriminator(int64_t width = 64, int64_t channels = 3, int64_t extent = 64) {
    const int64_t widest = DcganWidest(extent);
    if (widest == 0) {
      Fail(DcganExtentError("DcganDiscriminator", extent));
      return;
    }
    const nn::Conv2d::Options halves{.stride = 2, .padding = 1, .bias = false};
    emplace<nn::Conv2d>(channels, width, 4, halves);
    emplace<nn::LeakyReLU>(0.2);
    for (int64_t times = 1; times < widest; times *= 2) {
      emplace<nn::Conv2d>(times * width, 2 * times * width, 4, halves);
      emplace<nn::BatchNorm2d>(2 * times * width);
      emplace<nn::LeakyReLU>(0.2);
    }
    emplace<nn::Conv2d>(widest * width, 1, 4, nn::Conv2d::Options{.bias = false});
    emplace<nn::Flatten>(0);
  }
};

}  // namespace halftone::models
