// SSD for images of 512 x 512 on a ResNet-50 trunk: seven scales, 18,432 anchors. Source: Liu et al.,
// "SSD: single shot multibox detector", 2016 (arXiv:1512.02325), sections 2.1 and 2.2.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "halftone/examples/models/resnet.h"

namespace halftone::models {

// Shapes: x [N,3,512,512] -> scores [N,18432,num_classes] and boxes [N,18432,4], as offsets from
// the anchors; other multiples of 32 have NumAnchors(extent). Class 0 is the background. 32,956,484 parameters with 21 classes.
class Ssd512 : public nn::Module {
 public:
  static constexpr std::array<int64_t, 7> kAnchors = {4, 6, 6, 6, 6, 4, 4};  // in each place

  // Of images of extent x extent: 18,432 at 512.
  static int64_t NumAnchors(int64_t extent) {
    int64_t total = 0, cells = extent / 8;
    for (size_t i = 0; i < kAnchors.size(); ++i) {
      total += cells * cells * kAnchors[i];
      cells = i == 0 ? extent / 32 : (cells + 1) / 2;
    }
    return total;
  }

  explicit Ssd512(int64_t num_classes = 21) : trunk(50), num_classes_(num_classes) {
    register_module("trunk", trunk);
    int64_t in_channels = trunk.channels();
    for (int64_t out_channels : {512, 512, 256, 256, 256}) {
      auto& stage = extra.emplace();
      stage.emplace<nn::Conv2d>(in_channels, out_channels / 2, 1);
      stage.emplace<nn::ReLU>();
      stage.emplace<nn::Conv2d>(out_channels / 2, out_channels, 3,
                                nn::Conv2d::Options{.stride = 2, .padding = 1});
      stage.emplace<nn::ReLU>();
      in_channels = out_channels;
    }
    register_module("extra", extra);
    constexpr std::array<int64_t, 7> kChannels = {512, 2048, 512, 512, 256, 256, 256};
    for (size_t i = 0; i < kChannels.size(); ++i) {
      const nn::Conv2d::Options same{.padding = 1};
      classes.emplace(kChannels[i], kAnchors[i] * num_classes, 3, same);
      boxes.emplace(kChannels[i], kAnchors[i] * 4, 3, same);
    }
    register_module("classes", classes);
    register_module("boxes", boxes);
  }

  // {x} -> {scores, boxes}
  nn::Values forward(const nn::Values& in) override {
    const nn::Values stages = trunk.Features(in[0]);
    std::vector<nn::Value> features = {stages[1], stages[3]};
    for (nn::Sequential& stage : extra) features.push_back(stage(features.back()));
    std::vector<nn::Value> scores, offsets;
    for (size_t i = 0; i < features.size(); ++i) {
      scores.push_back(PerAnchor(classes[i](features[i]), num_classes_));
      offsets.push_back(PerAnchor(boxes[i](features[i]), 4));
    }
    return {nn::concat(scores, 1), nn::concat(offsets, 1)};
  }

  ResNetTrunk trunk;
  nn::ModuleListOf<nn::Sequential> extra;
  nn::ModuleListOf<nn::Conv2d> classes, boxes;

 private:
  // [N,anchors*size,H,W] -> [N,H*W*anchors,size]
  static nn::Value PerAnchor(const nn::Value& x, int64_t size) {
    return nn::reshape(nn::permute(x, {0, 2, 3, 1}), {x.shape()[0], -1, size});
  }

  int64_t num_classes_;
};

// Cross-entropy of the objects and of three times as many backgrounds, those with the largest loss;
// and smooth L1 of the objects' boxes. Both over the number of objects. Shapes: scores
// [N,A,classes], boxes and box_targets [N,A,4], labels [N,A] (i64, 0: background) -> {[], []}.
inline nn::Values MultiboxLosses(const nn::Value& scores, const nn::Value& boxes,
                                 const nn::Value& labels, const nn::Value& box_targets) {
  const nn::Value entropy = nn::reshape(
      nn::cross_entropy(nn::flatten(scores, 0, 1), nn::flatten(labels, 0), {.reduction = "none"}),
      {labels.shape()[0], labels.shape()[1]});
  const nn::Value is_object = labels > 0;
  const nn::Value objects = nn::cast(is_object, DType::kF32);
  // The rank of each background by its loss.
  const nn::Value order = nn::argsort(nn::where(is_object, -1.0, nn::detach(entropy)), 1, true);
  const nn::Value rank = nn::cast(nn::argsort(order, 1), DType::kF32);
  const nn::Value counted = nn::where(rank < 3.0 * nn::sum(objects, {1}, true), 1.0, objects);
  const nn::Value distance = nn::sum(nn::smooth_l1_loss(boxes, box_targets, "none"), {-1});
  const nn::Value count = nn::maximum(nn::sum(objects), 1.0);
  return {nn::sum(entropy * counted) / count, nn::sum(distance * objects) / count};
}

// Their sum.
inline nn::Value MultiboxLoss(const nn::Value& scores, const nn::Value& boxes,
                              const nn::Value& labels, const nn::Value& box_targets) {
  const nn::Values losses = MultiboxLosses(scores, boxes, labels, box_targets);
  return losses[0] + losses[1];
}

}  // namespace halftone::models
