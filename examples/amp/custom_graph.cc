// The CustomGraph of OneFlow's AMP tutorial, member by member. Exit status: 0 it learned, 1 it did not.
#include <cstdio>
#include <string>

#include "absl/flags/flag.h"
#include "halftone/cli/exit_status.h"
#include "halftone/examples/support/blobs.h"
#include "halftone/examples/support/setup.h"
#include "halftone/halftone.h"

ABSL_FLAG(std::string, scaler, "dynamic", "dynamic, or static: one scale for the whole training");

namespace nn = halftone::nn;
namespace amp = halftone::amp;
namespace optim = halftone::optim;
namespace example = halftone::example;
using halftone::DType;

class CustomGraph : public nn::Graph {
 public:
  CustomGraph(nn::Module& model, const amp::GradScaler& grad_scaler)
      : nn::Graph("CustomGraph"), model_(model) {
    add_module("model", model_);
    add_optimizer(optim::SGD(model_.parameters(), {.lr = 1e-3, .momentum = 0.9}));
    config.enable_amp(true, {.dtype = DType::kF16});
    config.set_gradient_accumulation_steps(2);
    config.allow_fuse_model_update_ops(true);
    config.allow_fuse_cast_scale(true);
    scaler = set_grad_scaler(grad_scaler);
  }
  // Out: the losses of the micro-batches. A module's loss is a function here.
  nn::Values build(const nn::Values& in) override {
    const nn::Value y_pred = model_(in[0]);
    const nn::Value loss = nn::cross_entropy(y_pred, in[1]);
    loss.backward();
    return {loss};
  }
  nn::ScalerHandle scaler;

 private:
  nn::Module& model_;
};

absl::Status Train() {
  const std::string choice = absl::GetFlag(FLAGS_scaler);
  if (choice != "dynamic" && choice != "static") {
    return halftone::cli::WrongOption("--scaler: expected dynamic or static");
  }
  nn::Sequential model(nn::Linear(256, 128), nn::ReLU(), nn::Linear(128, 10));
  CustomGraph graph(model, choice == "static" ? amp::StaticGradScaler(2048)
                                              : amp::GradScaler({.init_scale = 3000,
                                                                 .growth_factor = 2.0,
                                                                 .backoff_factor = 0.5,
                                                                 .growth_interval = 50}));
  double first = 0, last = 0;
  for (int step = 0; step < 100; ++step) {
    HT_ASSIGN_OR_RETURN(const auto out, graph(example::Blobs(step, 128, 256, 10)));
    last = (out[0].at(0) + out[0].at(1)) / 2;
    if (step == 0) first = last;
  }
  std::printf("%s scaler: loss %.4f -> %.4f, scale %g; %s\n", choice.c_str(), first, last,
              graph.scaler.scale(), graph.amp_summary().c_str());
  const double scale = choice == "static" ? 2048 : 3000 * 2 * 2;  // grown twice in 100 steps
  if (graph.scaler.scale() != scale) return absl::InternalError("not the scale of the rule");
  return last < 0.5 * first ? absl::OkStatus() : absl::InternalError("it has not learned");
}

int main(int argc, char** argv) {
  return example::RunProgram("custom_graph", "the graph of OneFlow's AMP tutorial", argc, argv,
                             &Train);
}
