// DCGAN for images of 64 x 64. Source: Radford et al., "Unsupervised representation learning with
// deep convolutional generative adversarial networks", 2016 (arXiv:1511.06434), section 3 and
// figure 1.
#pragma once

#include <cstdint>

#include "halftone/halftone.h"

namespace halftone::models {

// Shapes: noise [N,latent,1,1] -> images [N,channels,64,64] in (-1, 1).
class DcganGenerator : public nn::Sequential {
 public:
  explicit DcganGenerator(int64_t latent = 100, int64_t width = 64, int64_t channels = 3) {
    emplace<nn::ConvTranspose2d>(latent, 8 * width, 4, nn::ConvTranspose2d::Options{.bias = false});
    const nn::ConvTranspose2d::Options doubles{.stride = 2, .padding = 1, .bias = false};
    for (int64_t times = 8; times > 1; times /= 2) {
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

// Shapes: images [N,channels,64,64] -> scores [N], whose sigmoid is how real they are.
class DcganDiscriminator : public nn::Sequential {
 public:
  explicit DcganDiscriminator(int64_t width = 64, int64_t channels = 3) {
    const nn::Conv2d::Options halves{.stride = 2, .padding = 1, .bias = false};
    emplace<nn::Conv2d>(channels, width, 4, halves);
    emplace<nn::LeakyReLU>(0.2);
    for (int64_t times = 1; times < 8; times *= 2) {
      emplace<nn::Conv2d>(times * width, 2 * times * width, 4, halves);
      emplace<nn::BatchNorm2d>(2 * times * width);
      emplace<nn::LeakyReLU>(0.2);
    }
    emplace<nn::Conv2d>(8 * width, 1, 4, nn::Conv2d::Options{.bias = false});
    emplace<nn::Flatten>(0);
  }
};

}  // namespace halftone::models
