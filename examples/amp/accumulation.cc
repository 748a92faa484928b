// One update by the gradients of several batches: the scale stays while they are summed, unscaled and
// in f32. An epoch whose batches are no multiple of them ends with a window that is short. Exit
// status: 0 it learned, 1 it did not.
#include <cstdio>

#include "halftone/examples/support/blobs.h"
#include "halftone/examples/support/setup.h"
#include "halftone/halftone.h"

namespace nn = halftone::nn;
namespace amp = halftone::amp;
namespace optim = halftone::optim;
namespace example = halftone::example;
using halftone::DType;

class Classifier : public nn::Graph {
 public:
  Classifier() : net_(nn::Linear(16, 64), nn::ReLU(), nn::Linear(64, 4)) {
    add_module("net", net_);
    optimizer = add_optimizer(optim::SGD(parameters(), {.lr = 0.2}));
    config.enable_amp(true, {.dtype = DType::kF16});
    config.accumulate_calls(4);
    set_grad_scaler(amp::GradScaler());
  }
  nn::Values build(const nn::Values& in) override {
    const nn::Value loss = nn::cross_entropy(net_(in[0]), in[1]);
    loss.backward();  // the mean over the window is what updates: nothing is divided here
    return {loss};
  }
  nn::OptimizerHandle optimizer;

 private:
  nn::Sequential net_;
};

absl::Status Train() {
  constexpr int kEpochs = 15, kBatches = 18;
  Classifier model;
  double loss = 0;
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    for (int batch = 0; batch < kBatches; ++batch) {
      HT_ASSIGN_OR_RETURN(const auto out, model(example::Blobs(batch, 8, 16, 4)));
      loss = out[0].item();
    }
    HT_RETURN_IF_ERROR(model.flush());  // 18 = 4 * 4 + 2: the mean of two
  }
  const auto updates = static_cast<long long>(model.optimizer.applied_steps());
  std::printf("loss %.4f after %lld updates\n", loss, updates);
  return loss < 0.3 && updates == 5 * kEpochs ? absl::OkStatus()
                                              : absl::InternalError("it has not learned");
}

int main(int argc, char** argv) {
  return example::RunProgram("accumulation", "one update by the gradients of several batches", argc,
                             argv, &Train);
}
