// EDSR, super-resolution by the baseline of 16 residual blocks. Source: Lim et al., "Enhanced deep
// residual networks for single image super-resolution", 2017 (arXiv:1707.02921), figure 3 and
// table 1; the mean of the data set is left to the caller.
#pragma once

#include <cstdint>

#include "halftone/halftone.h"

namespace halftone::models {

// x + conv(relu(conv(x))): no norms.
class EdsrBlock : public nn::Module {
 public:
  explicit EdsrBlock(int64_t channels)
      : conv1(channels, channels, 3, {.padding = 1}), conv2(channels, channels, 3, {.padding = 1}) {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
  }
  nn::Value forward(const nn::Value& x) override { return x + conv2(nn::relu(conv1(x))); }
  nn::Conv2d conv1, conv2;
};

// Shapes: x [N,3,H,W] -> [N,3,4H,4W]. 1,517,571 parameters with 64 channels and 16 blocks.
class Edsr : public nn::Module {
 public:
  explicit Edsr(int64_t channels = 64, int64_t num_blocks = 16)
      : head(3, channels, 3, {.padding = 1}), tail(channels, channels, 3, {.padding = 1}) {
    register_module("head", head);
    for (int64_t i = 0; i < num_blocks; ++i) body.emplace<EdsrBlock>(channels);
    register_module("body", body);
    register_module("tail", tail);
    const nn::Conv2d::Options same{.padding = 1};
    for (int twice = 0; twice < 2; ++twice) {
      up.emplace<nn::Conv2d>(channels, 4 * channels, 3, same);
      up.emplace<nn::PixelShuffle>(2);
    }
    up.emplace<nn::Conv2d>(channels, 3, 3, same);
    register_module("up", up);
  }
  nn::Value forward(const nn::Value& x) override {
    const nn::Value shallow = head(x);
    return up(shallow + tail(body(shallow)));
  }

  nn::Conv2d head;
  nn::Sequential body;
  nn::Conv2d tail;
  nn::Sequential up;
};

}  // namespace halftone::models
