// ResNet of 18, 34, 50 or 101 layers. Source: He et al., "Deep residual learning for image
// recognition", 2016 (arXiv:1512.03385), table 1, with the stride of a bottleneck in its 3x3
// convolution ("v1.5"). Parameters have the names of torchvision's, so its weights load.
#pragma once

#include <array>
#include <cstdint>

#include "halftone/halftone.h"

namespace halftone::models {

// y = relu(F(x) + x), where x goes through `downsample` if F changes its shape.
class ResidualBlock : public nn::Module {
 public:
  nn::Value forward(const nn::Value& x) override {
    return nn::relu(Residual(x) + (downsample.size() == 0 ? x : downsample(x)));
  }
  nn::Sequential downsample;

 protected:
  virtual nn::Value Residual(const nn::Value& x) = 0;

  void AddDownsample(int64_t in_channels, int64_t out_channels, int64_t stride) {
    if (stride == 1 && in_channels == out_channels) return;
    downsample.emplace<nn::Conv2d>(in_channels, out_channels, 1,
                                   nn::Conv2d::Options{.stride = stride, .bias = false});
    downsample.emplace<nn::BatchNorm2d>(out_channels);
    register_module("downsample", downsample);
  }
};

class BasicBlock : public ResidualBlock {
 public:
  static constexpr int64_t kExpansion = 1;
  BasicBlock(int64_t in_channels, int64_t width, int64_t stride)
      : conv1(in_channels, width, 3, {.stride = stride, .padding = 1, .bias = false}),
        bn1(width),
        conv2(width, width, 3, {.padding = 1, .bias = false}),
        bn2(width) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    AddDownsample(in_channels, width, stride);
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;

 protected:
  nn::Value Residual(const nn::Value& x) override { return bn2(conv2(nn::relu(bn1(conv1(x))))); }
};

class Bottleneck : public ResidualBlock {
 public:
  static constexpr int64_t kExpansion = 4;
  Bottleneck(int64_t in_channels, int64_t width, int64_t stride)
      : conv1(in_channels, width, 1, {.bias = false}),
        bn1(width),
        conv2(width, width, 3, {.stride = stride, .padding = 1, .bias = false}),
        bn2(width),
        conv3(width, kExpansion * width, 1, {.bias = false}),
        bn3(kExpansion * width) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    register_module("conv2", conv2);
    register_module("bn2", bn2);
    register_module("conv3", conv3);
    register_module("bn3", bn3);
    AddDownsample(in_channels, kExpansion * width, stride);
  }
  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Conv2d conv3;
  nn::BatchNorm2d bn3;

 protected:
  nn::Value Residual(const nn::Value& x) override {
    const nn::Value narrow = nn::relu(bn1(conv1(x)));
    return bn3(conv3(nn::relu(bn2(conv2(narrow)))));
  }
};

// What lies before the classifier. Shapes: x [N,in_channels,H,W] -> [N,channels(),H/32,W/32].
// Error (kept in status()): a depth other than 18, 34, 50 or 101.
class ResNetTrunk : public nn::Module {
 public:
  explicit ResNetTrunk(int64_t depth, int64_t in_channels = 3)
      : conv1(in_channels, 64, 7, {.stride = 2, .padding = 3, .bias = false}), bn1(64) {
    register_module("conv1", conv1);
    register_module("bn1", bn1);
    if (depth == 18) {
      AddStages<BasicBlock>({2, 2, 2, 2});
    } else if (depth == 34) {
      AddStages<BasicBlock>({3, 4, 6, 3});
    } else if (depth == 50) {
      AddStages<Bottleneck>({3, 4, 6, 3});
    } else if (depth == 101) {
      AddStages<Bottleneck>({3, 4, 23, 3});
    } else {
      Fail(InvalidArgument("ResNet: depth is ", depth, "; expected 18, 34, 50 or 101"));
    }
  }

  nn::Value forward(const nn::Value& x) override { return Features(x)[3]; }
  // What the four stages give, at 1/4, 1/8, 1/16 and 1/32 of the extents of x.
  nn::Values Features(const nn::Value& x) {
    nn::Value y = nn::max_pool2d(nn::relu(bn1(conv1(x))), 3, {.stride = 2, .padding = 1});
    nn::Values features;
    for (nn::Sequential* layer : {&layer1, &layer2, &layer3, &layer4}) {
      features.push_back(y = (*layer)(y));
    }
    return features;
  }
  int64_t channels() const { return channels_; }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Sequential layer1, layer2, layer3, layer4;

 private:
  template <typename Block>
  void AddStages(const std::array<int, 4>& blocks) {
    nn::Sequential* const layers[] = {&layer1, &layer2, &layer3, &layer4};
    for (int stage = 0; stage < 4; ++stage) {
      const int64_t width = int64_t{64} << stage;
      for (int i = 0; i < blocks[stage]; ++i) {
        layers[stage]->emplace<Block>(channels_, width, stage > 0 && i == 0 ? 2 : 1);
        channels_ = Block::kExpansion * width;
      }
      register_module(Concat("layer", stage + 1), *layers[stage]);
    }
  }

  int64_t channels_ = 64;
};

// Shapes: x [N,in_channels,H,W] -> scores [N,num_classes].
// Example: models::ResNet net(50);
class ResNet : public ResNetTrunk {
 public:
  explicit ResNet(int64_t depth, int64_t num_classes = 1000, int64_t in_channels = 3)
      : ResNetTrunk(depth, in_channels), fc(channels(), num_classes) {
    register_module("fc", fc);
  }
  nn::Value forward(const nn::Value& x) override {
    return fc(nn::mean(ResNetTrunk::forward(x), {2, 3}));
  }
  nn::Linear fc;
};

}  // namespace halftone::models
