// The common step of mixed precision: the net in f16, the loss scaled, the gradients unscaled, and no
// update where one of them is not finite. Exit status: 0 it learned, 1 it did not.
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
    add_optimizer(optim::SGD(parameters(), {.lr = 0.1}));
    config.enable_amp(true, {.dtype = DType::kF16});
    scaler = set_grad_scaler(amp::GradScaler());
  }
  nn::Values build(const nn::Values& in) override {
    const nn::Value loss = nn::cross_entropy(net_(in[0]), in[1]);
    loss.backward();
    return {loss};
  }
  nn::ScalerHandle scaler;

 private:
  nn::Sequential net_;
};

absl::Status Train() {
  Classifier model;
  double loss = 0;
  for (int step = 0; step < 60; ++step) {
    HT_ASSIGN_OR_RETURN(const auto out, model(example::Blobs(step, 32, 16, 4)));
    loss = out[0].item();
  }
  std::printf("loss %.4f, scale %g, %lld steps skipped; %s\n", loss, model.scaler.scale(),
              static_cast<long long>(model.scaler.skipped_count()), model.amp_summary().c_str());
  return loss < 0.3 ? absl::OkStatus() : absl::InternalError("it has not learned");
}

int main(int argc, char** argv) {
  return example::RunProgram("typical", "one step of mixed precision after the other", argc, argv,
                             &Train);
}
