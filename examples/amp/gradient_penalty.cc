// A loss that has the norm of its own gradients in it, so that the backward pass differentiates a
// backward pass. nn::gradients gives true gradients: it scales them on their way through f16, and
// unscales them in f32, so that the penalty means the same whatever the scale is. Exit status: 0 it
// learned and the gradients became small, 1 they did not.
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "halftone/cli/exit_status.h"
#include "halftone/examples/support/blobs.h"
#include "halftone/examples/support/setup.h"
#include "halftone/halftone.h"

ABSL_FLAG(std::string, of, "parameters", "whose gradient is penalised: parameters or images");

namespace nn = halftone::nn;
namespace amp = halftone::amp;
namespace optim = halftone::optim;
namespace example = halftone::example;
using halftone::DType;
using halftone::Tensor;

class Penalised : public nn::Graph {
 public:
  Penalised(double weight, bool of_images)
      : weight_(weight),
        of_images_(of_images),
        net_(nn::Conv2d(1, 8, 3, {.padding = 1}), nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(),
             nn::Linear(8 * 4 * 4, 4)) {
    add_module("net", net_);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.1}));
    config.enable_amp(true, {.dtype = DType::kF16});
    scaler = set_grad_scaler(amp::GradScaler());
  }
  // Out: the loss, and the norm of its gradient.
  nn::Values build(const nn::Values& in) override {
    const nn::Value loss = nn::cross_entropy(net_(in[0]), in[1]);
    std::vector<nn::Value> wrt;
    if (of_images_) {
      wrt.push_back(in[0]);
    } else {
      for (const auto& [name, parameter] : net_.named_parameters()) wrt.push_back(parameter);
    }
    nn::Value squares = nn::constant(Tensor::Full(DType::kF32, {}, 1e-12));
    for (const nn::Value& g : nn::gradients(loss, wrt)) squares = squares + nn::sum(g * g);
    const nn::Value norm = nn::sqrt(squares);
    (loss + weight_ * norm).backward();
    return {loss, norm};
  }
  nn::ScalerHandle scaler;

 private:
  double weight_;
  bool of_images_;
  nn::Sequential net_;
};

// The norm after training.
absl::StatusOr<double> Train(double weight, bool of_images) {
  Penalised model(weight, of_images);
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
  const std::string of = absl::GetFlag(FLAGS_of);
  if (of != "parameters" && of != "images") {
    return halftone::cli::WrongOption("--of: expected parameters or images");
  }
  HT_ASSIGN_OR_RETURN(const double free, Train(0, of == "images"));
  HT_ASSIGN_OR_RETURN(const double held, Train(0.3, of == "images"));
  return held < free ? absl::OkStatus() : absl::InternalError("the penalty made it no smaller");
}

int main(int argc, char** argv) {
  return example::RunProgram("gradient_penalty", "a gradient of a gradient under mixed precision",
                             argc, argv, &Compare);
}
