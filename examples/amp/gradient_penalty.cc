// A loss that has the norm of its own gradients in it, so that the backward pass differentiates a
// backward pass. nn::gradients gives true gradients: it scales them on their way through f16, and
// unscales them in f32, so that the penalty means the same whatever the scale is. Exit status: 0 it
// learned and the gradients became small, 1 they did not.
#include <cstdio>

#include "halftone/examples/support/blobs.h"
#include "halftone/examples/support/setup.h"
#include "halftone/halftone.h"

namespace nn = halftone::nn;
namespace amp = halftone::amp;
namespace optim = halftone::optim;
namespace example = halftone::example;
using halftone::DType;

class Penalised : public nn::Graph {
 public:
  explicit Penalised(double weight)
      : weight_(weight),
        net_(nn::Conv2d(1, 8, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
             nn::Linear(8 * 4 * 4, 4)) {
    add_module("net", net_);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.1}));
    config.enable_amp(true, {.dtype = DType::kF16});
    scaler = set_grad_scaler(amp::GradScaler());
  }
  // Out: the loss, and the norm of its gradient in the images.
  nn::Values build(const nn::Values& in) override {
    const nn::Value loss = nn::cross_entropy(net_(in[0]), in[1]);
    const nn::Value gradient = nn::gradients(loss, {in[0]})[0];
    const nn::Value norm = nn::sqrt(nn::sum(gradient * gradient) + 1e-12);
    (loss + weight_ * norm).backward();
    return {loss, norm};
  }
  nn::ScalerHandle scaler;

 private:
  double weight_;
  nn::Sequential net_;
};

// The norm after training.
absl::StatusOr<double> Train(double weight) {
  Penalised model(weight);
  double loss = 0, norm = 0;
  for (int step = 0; step < 80; ++step) {
    HT_ASSIGN_OR_RETURN(const auto out, model(example::BlobImages(step, 16, 8, 4)));
    loss = out[0].item();
    norm = out[1].item();
  }
  std::printf("weight %g: loss %.4f, norm of the gradient %.5f, scale %g, %lld steps skipped\n",
              weight, loss, norm, model.scaler.scale(),
              static_cast<long long>(model.scaler.skipped_count()));
  if (!(loss < 0.5)) return absl::InternalError("it has not learned");
  return norm;
}

absl::Status Compare() {
  HT_ASSIGN_OR_RETURN(const double free, Train(0));
  HT_ASSIGN_OR_RETURN(const double held, Train(1));
  return held < free ? absl::OkStatus() : absl::InternalError("the penalty made it no smaller");
}

int main(int argc, char** argv) {
  return example::RunProgram("gradient_penalty", "a gradient of a gradient under mixed precision",
                             argc, argv, &Compare);
}
