// SSD with a scaler for each of its two losses: that of the classes and that of the boxes differ in
// size, and each finds its own scale. Images here are small, the model is not: any extent from 32 does.
// Exit status: 0 both losses fell, 1 one did not.
#include <cstdio>

#include "halftone/examples/models/ssd512.h"
#include "halftone/examples/support/setup.h"
#include "halftone/halftone.h"

namespace nn = halftone::nn;
namespace amp = halftone::amp;
namespace models = halftone::models;
namespace optim = halftone::optim;
namespace example = halftone::example;
using halftone::DType;
using halftone::Tensor;

class Detector : public nn::Graph {
 public:
  Detector() {
    add_module("ssd", ssd_);
    add_optimizer(optim::SGD(parameters(), {.lr = 1e-3, .momentum = 0.9}));
    config.enable_amp(true, {.dtype = DType::kF16});
    of_classes = set_grad_scaler(amp::GradScaler({.init_scale = 4096, .growth_interval = 3}));
    of_boxes = add_scaler(amp::GradScaler({.init_scale = 1024, .growth_interval = 3}));
  }
  // In: images [N,3,E,E], labels [N,A], box targets [N,A,4]. Out: both losses.
  nn::Values build(const nn::Values& in) override {
    const nn::Values out = ssd_(nn::Values{in[0]});
    const nn::Values losses = models::MultiboxLosses(out[0], out[1], in[1], in[2]);
    losses[0].backward({.scaler = of_classes});
    losses[1].backward({.scaler = of_boxes});
    return losses;
  }
  nn::ScalerHandle of_classes, of_boxes;

 private:
  models::Ssd512 ssd_;
};

// One batch of two images of 64 x 64: a bright square each, which every seventh anchor is to find.
std::vector<Tensor> Images() {
  constexpr int64_t kImages = 2, kExtent = 64;
  const int64_t anchors = models::Ssd512::NumAnchors(kExtent);
  Tensor x = Tensor::Zeros(DType::kF32, {kImages, 3, kExtent, kExtent});
  Tensor labels = Tensor::Zeros(DType::kI64, {kImages, anchors});
  Tensor boxes = Tensor::Zeros(DType::kF32, {kImages, anchors, 4});
  for (int64_t n = 0; n < kImages; ++n) {
    for (int64_t i = 0; i < 3 * kExtent * kExtent; ++i) {
      const bool bright = i % kExtent / 32 == n && i / kExtent % kExtent < 32;
      x.set(n * 3 * kExtent * kExtent + i, bright ? 1 : -1);
    }
    for (int64_t a = 0; a < anchors; a += 7) {
      labels.set(n * anchors + a, static_cast<double>(n + 1));
      for (int64_t i = 0; i < 4; ++i) boxes.set((n * anchors + a) * 4 + i, 0.5 - 0.2 * i);
    }
  }
  return {x, labels, boxes};
}

absl::Status Train() {
  Detector model;
  const std::vector<Tensor> images = Images();
  double first[2] = {}, last[2] = {};
  for (int step = 0; step < 4; ++step) {
    HT_ASSIGN_OR_RETURN(const auto out, model(images));
    for (int i = 0; i < 2; ++i) {
      last[i] = out[static_cast<size_t>(i)].item();
      if (step == 0) first[i] = last[i];
    }
  }
  std::printf("classes: loss %.4f -> %.4f, scale %g; boxes: loss %.4f -> %.4f, scale %g\n",
              first[0], last[0], model.of_classes.scale(), first[1], last[1],
              model.of_boxes.scale());
  return last[0] < first[0] && last[1] < first[1] ? absl::OkStatus()
                                                  : absl::InternalError("they have not fallen");
}

int main(int argc, char** argv) {
  return example::RunProgram("detection", "SSD with a scaler for each loss", argc, argv, &Train);
}
