// Two models, two losses that both depend on, two optimizers and one scaler. An optimizer skips its
// update where its own gradients are not finite, and only then; the scale is that of the whole step.
// Exit status: 0 both learned, 1 one did not.
#include <cstdio>
#include <limits>

#include "halftone/examples/support/blobs.h"
#include "halftone/examples/support/setup.h"
#include "halftone/halftone.h"

namespace nn = halftone::nn;
namespace amp = halftone::amp;
namespace optim = halftone::optim;
namespace example = halftone::example;
using halftone::DType;
using halftone::Tensor;

class TwoModels : public nn::Graph {
 public:
  TwoModels() : a_(nn::Linear(16, 32), nn::ReLU(), nn::Linear(32, 4)), b_(nn::Linear(16, 4)) {
    add_module("a", a_);
    add_module("b", b_);
    optimizer_a = add_optimizer(optim::SGD(a_.parameters(), {.lr = 0.05}));
    optimizer_b = add_optimizer(optim::Adam(b_.parameters(), {.lr = 0.02}));
    config.enable_amp(true, {.dtype = DType::kF16});
    scaler = set_grad_scaler(amp::GradScaler());
  }
  // In: points, classes, a factor of b's second result. Out: both losses.
  nn::Values build(const nn::Values& in) override {
    const nn::Value of_a = a_(in[0]), of_b = b_(in[0]);
    const nn::Value together = nn::cross_entropy(2.0 * of_a + 3.0 * of_b, in[1]);
    const nn::Value alone = nn::cross_entropy(of_b * in[2], in[1]);
    together.backward();
    alone.backward({.optimizers = {optimizer_b}});
    return {together, alone};
  }
  nn::OptimizerHandle optimizer_a, optimizer_b;
  nn::ScalerHandle scaler;

 private:
  nn::Sequential a_;
  nn::Linear b_;
};

absl::Status Train() {
  TwoModels models;
  const Tensor one = Tensor::Full(DType::kF32, {}, 1);
  double together = 0, alone = 0;
  for (int step = 0; step < 60; ++step) {
    auto batch = example::Blobs(step, 32, 16, 4);
    batch.push_back(one);
    HT_ASSIGN_OR_RETURN(const auto out, models(batch));
    together = out[0].item();
    alone = out[1].item();
  }
  std::printf("losses %.4f and %.4f, scale %g\n", together, alone, models.scaler.scale());

  // The second loss is not finite: b stays as it is, a goes on, and the scale is halved once.
  const double scale = models.scaler.scale();
  auto batch = example::Blobs(60, 32, 16, 4);
  batch.push_back(Tensor::Full(DType::kF32, {}, std::numeric_limits<float>::infinity()));
  HT_RETURN_IF_ERROR(models(batch).status());
  const bool right = !models.optimizer_a.last_step_skipped() &&
                     models.optimizer_b.last_step_skipped() && models.scaler.scale() == scale / 2;
  std::printf("after a loss that is not finite: a %s, b %s, scale %g\n",
              models.optimizer_a.last_step_skipped() ? "skipped" : "updated",
              models.optimizer_b.last_step_skipped() ? "skipped" : "updated",
              models.scaler.scale());
  if (!right) return absl::InternalError("expected a updated, b skipped, and half the scale");
  return together < 0.3 && alone < 0.3 ? absl::OkStatus()
                                       : absl::InternalError("they have not learned");
}

int main(int argc, char** argv) {
  return example::RunProgram("several_models", "two models, losses and optimizers, one scaler",
                             argc, argv, &Train);
}
