// Clipping by the norm of all gradients, which sees them unscaled: the limit means the same whatever
// the scale is. Exit status: 0 every update kept to the limit, 1 one did not.
#include <cmath>
#include <cstdio>

#include "halftone/examples/support/blobs.h"
#include "halftone/examples/support/setup.h"
#include "halftone/halftone.h"

namespace nn = halftone::nn;
namespace amp = halftone::amp;
namespace optim = halftone::optim;
namespace example = halftone::example;
using halftone::DType;
using halftone::Tensor;

constexpr double kRate = 0.5, kMaxNorm = 0.1;

class Classifier : public nn::Graph {
 public:
  Classifier() : net(nn::Linear(16, 64), nn::ReLU(), nn::Linear(64, 4)) {
    add_module("net", net);
    optimizer = add_optimizer(optim::SGD(parameters(), {.lr = kRate, .clip_norm = kMaxNorm}));
    config.enable_amp(true, {.dtype = DType::kF16});
    set_grad_scaler(amp::GradScaler());
  }
  nn::Values build(const nn::Values& in) override {
    const nn::Value loss = nn::cross_entropy(net(in[0]), in[1]);
    loss.backward();
    return {loss};
  }
  nn::Sequential net;
  nn::OptimizerHandle optimizer;
};

// The root of the sum of squares over all parameters of `a` - `b`.
double Distance(const nn::StateDict& a, const nn::StateDict& b) {
  double squares = 0;
  for (const auto& [name, value] : a) {
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      squares += std::pow(value.at(i) - b.at(name).at(i), 2);
    }
  }
  return std::sqrt(squares);
}

absl::StatusOr<nn::StateDict> Copied(nn::Module& net) {
  HT_ASSIGN_OR_RETURN(auto state, net.state_dict());
  for (auto& [name, value] : state) value = value.Clone();
  return state;
}

absl::Status Train() {
  Classifier model;
  HT_RETURN_IF_ERROR(model.initialize());
  for (int step = 0; step < 20; ++step) {
    HT_ASSIGN_OR_RETURN(const auto before, Copied(model.net));
    HT_RETURN_IF_ERROR(model(example::Blobs(step, 32, 16, 4)).status());
    HT_ASSIGN_OR_RETURN(const auto after, Copied(model.net));
    const double moved = Distance(after, before);
    std::printf("step %2d: gradient norm %.4f, the parameters moved by %.4f\n", step,
                model.optimizer.grad_norm(), moved);
    // f32 rounds each of the 1,348 parameters once.
    if (moved > kRate * kMaxNorm * (1 + 1e-4)) return absl::InternalError("beyond the limit");
  }
  return absl::OkStatus();
}

int main(int argc, char** argv) {
  return example::RunProgram("clipping", "clips the norm of unscaled gradients", argc, argv,
                             &Train);
}
