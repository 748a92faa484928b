// Trains a DCGAN on Fashion-MNIST, or any IDX data set of that form, with mixed precision: two graphs
// that share their modules, each with an optimizer and a loss scaler of its own. Progress goes to
// standard error; the last line of standard output is one JSON object. Exit status: 0 trained, 1
// failed or a weight is not finite, 2 an option has a wrong value or memory is short.
#include "halftone/examples/models/dcgan.h"

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include "absl/flags/flag.h"
#include "halftone/cli/exit_status.h"
#include "halftone/examples/support/dataset.h"
#include "halftone/examples/support/device_choice.h"
#include "halftone/examples/support/setup.h"
#include "halftone/halftone.h"

ABSL_FLAG(std::string, amp, "auto", halftone::example::kAmpHelp);
ABSL_FLAG(std::string, device, "cpu", halftone::example::kDeviceHelp);
ABSL_FLAG(int, steps, 1000, "training steps, of each net");
ABSL_FLAG(int, batch, 64, "images per step");
ABSL_FLAG(int, accumulate, 1, "batches whose gradients make one update, of each net");
ABSL_FLAG(int, width, 32, "channels of the largest images of the nets");
ABSL_FLAG(double, lr, 2e-4, "learning rate of both Adams");
ABSL_FLAG(std::string, data, "/usr/share/datasets/fashion-mnist", "folder with the four IDX files");
ABSL_FLAG(uint64_t, seed, 0, "of weights, noise and shuffling");
ABSL_FLAG(int, threads, 0, "CPU threads; 0: all");
ABSL_FLAG(std::string, log, "", "folder for the losses, ... as TensorBoard reads them");
ABSL_FLAG(std::string, sheet, "", "file for 64 generated images, as PGM");

namespace nn = halftone::nn;
namespace amp = halftone::amp;
namespace cli = halftone::cli;
namespace models = halftone::models;
namespace optim = halftone::optim;
namespace example = halftone::example;
using halftone::DType;
using halftone::Tensor;

constexpr int64_t kExtent = 32, kLatent = 64;

struct Nets {
  explicit Nets(int64_t width)
      : generator(kLatent, width, 1, kExtent), discriminator(width, 1, kExtent) {}
  models::DcganGenerator generator;
  models::DcganDiscriminator discriminator;
};

nn::Value Generated(Nets& nets, int64_t count) {
  return nets.generator(nn::randn({count, kLatent, 1, 1}));
}

// What it costs to take images that score `scores` for real (1) or generated (0).
nn::Value LossAs(double truth, const nn::Value& scores) {
  return nn::binary_cross_entropy_with_logits(
      scores, nn::constant(Tensor::Full(DType::kF32, scores.shape(), truth)));
}

// A graph of both nets that trains one of them.
class GanStep : public nn::Graph {
 public:
  GanStep(const std::string& name, Nets& nets, nn::Module& trained, double lr, bool scale_loss)
      : nn::Graph(name), nets_(nets) {
    add_module("generator", nets.generator);
    add_module("discriminator", nets.discriminator);
    optimizer = add_optimizer(optim::Adam(trained.parameters(), {.lr = lr, .betas = {0.5, 0.999}}));
    config.accumulate_calls(absl::GetFlag(FLAGS_accumulate));
    scaler = set_grad_scaler(amp::GradScaler({.growth_interval = 500, .enabled = scale_loss}));
  }
  nn::OptimizerHandle optimizer;
  nn::ScalerHandle scaler;

 protected:
  Nets& nets_;
};

// In: images u8 [N,28,28]. Out: the loss of the discriminator.
class DiscriminatorStep : public GanStep {
 public:
  DiscriminatorStep(Nets& nets, double lr, bool scale_loss)
      : GanStep("discriminator_step", nets, nets.discriminator, lr, scale_loss) {}
  nn::Values build(const nn::Values& in) override {
    const nn::Value pixels = nn::cast(in[0], DType::kF32) / 127.5 - 1.0;
    const nn::Value real = nn::unsqueeze(nn::pad(pixels, {2, 2, 2, 2}, "constant", -1), 1);
    const nn::Value fake = nn::detach(Generated(nets_, in[0].dim(0)));
    nn::Value loss = LossAs(1, nets_.discriminator(real)) + LossAs(0, nets_.discriminator(fake));
    loss.backward();
    return {loss};
  }
};

// In: nothing. Out: the loss of the generator.
class GeneratorStep : public GanStep {
 public:
  GeneratorStep(Nets& nets, double lr, bool scale_loss, int64_t batch)
      : GanStep("generator_step", nets, nets.generator, lr, scale_loss), batch_(batch) {}
  nn::Values build(const nn::Values&) override {
    nn::Value loss = LossAs(1, nets_.discriminator(Generated(nets_, batch_)));
    loss.backward();
    return {loss};
  }

 private:
  int64_t batch_;
};

// Out: 64 images [64,1,E,E].
class Generation : public nn::Graph {
 public:
  explicit Generation(Nets& nets) : nn::Graph("generation"), nets_(nets) {
    add_module("generator", nets.generator);
    eval();
  }
  nn::Values build(const nn::Values&) override { return {Generated(nets_, 64)}; }

 private:
  Nets& nets_;
};

// Eight rows of eight images as a PGM file.
absl::Status WriteSheet(const std::string& path, const Tensor& images) {
  const int64_t side = 8 * kExtent;
  std::string file = halftone::Concat("P5 ", side, " ", side, " 255\n");
  for (int64_t y = 0; y < side; ++y) {
    for (int64_t x = 0; x < side; ++x) {
      const int64_t image = y / kExtent * 8 + x / kExtent;
      const double value =
          images.at((image * kExtent + y % kExtent) * kExtent + x % kExtent);  // in (-1, 1)
      file += static_cast<char>(static_cast<uint8_t>(std::lround((value + 1) * 127.5)));
    }
  }
  if (!(std::ofstream(path, std::ios::binary) << file).flush()) {
    return absl::FailedPreconditionError(halftone::Concat(path, ": cannot write"));
  }
  return absl::OkStatus();
}

// Names a parameter or buffer with an element that is not finite; OK if there is none.
absl::Status CheckFinite(nn::Module& net) {
  HT_ASSIGN_OR_RETURN(const auto state, net.state_dict());
  for (const auto& [name, value] : state) {
    for (int64_t i = 0; i < value.num_elements(); ++i) {
      if (!std::isfinite(value.at(i))) {
        return absl::InternalError(halftone::Concat(name, " has an element that is not finite"));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status Train(Nets& nets, DiscriminatorStep& discriminator, GeneratorStep& generator,
                   example::Dataset& data, int64_t batch) {
  if (data.size() < batch) {
    return halftone::InvalidArgument("--batch: is ", batch, ", and there are ", data.size(),
                                     " images");
  }
  nn::RunLog log(discriminator, absl::GetFlag(FLAGS_log));
  const int steps = absl::GetFlag(FLAGS_steps);
  const int64_t batches = data.size() / batch;  // of an epoch
  for (int step = 0; step < steps; ++step) {
    if (step % batches == 0) data.Shuffle(discriminator.config.seed, step / batches);
    const Tensor images = data.Batch(step % batches * batch, batch)[0];
    HT_ASSIGN_OR_RETURN(auto d, discriminator({images}));
    HT_ASSIGN_OR_RETURN(auto g, generator({}));
    log.add_step({{"train/discriminator_loss", d[0]}, {"train/generator_loss", g[0]}}, batch);
    if ((step + 1) % 100 != 0 && step + 1 != steps) continue;
    std::fprintf(stderr, "step %d/%d: discriminator %.4f, generator %.4f\n", step + 1, steps,
                 d[0].item(), g[0].item());
    HT_RETURN_IF_ERROR(CheckFinite(nets.generator));
    HT_RETURN_IF_ERROR(CheckFinite(nets.discriminator));
  }
  // A window of accumulated gradients that the last step left open.
  HT_RETURN_IF_ERROR(discriminator.flush());
  HT_RETURN_IF_ERROR(generator.flush());
  for (const nn::Graph* graph :
       {static_cast<nn::Graph*>(&discriminator), static_cast<nn::Graph*>(&generator)}) {
    std::printf("amp of %s: %s\n", graph->name().c_str(), graph->amp_summary().c_str());
    for (const std::string& note : graph->notes()) std::printf("note: %s\n", note.c_str());
  }
  std::printf(
      "{\"finite\": true, \"device\": \"%s\", \"amp\": \"%s\", \"steps\": %d, \"updates\": %lld, "
      "\"discriminator_scale\": %.9g, \"discriminator_skipped\": %lld, "
      "\"generator_scale\": %.9g, \"generator_skipped\": %lld}\n",
      generator.device().ToString().c_str(), absl::GetFlag(FLAGS_amp).c_str(), steps,
      static_cast<long long>(generator.optimizer.applied_steps()), discriminator.scaler.scale(),
      static_cast<long long>(discriminator.scaler.skipped_count()), generator.scaler.scale(),
      static_cast<long long>(generator.scaler.skipped_count()));
  return absl::OkStatus();
}

absl::Status Run() {
  const int batch = absl::GetFlag(FLAGS_batch), width = absl::GetFlag(FLAGS_width);
  if (batch < 1 || width < 1 || absl::GetFlag(FLAGS_steps) < 1 ||
      absl::GetFlag(FLAGS_accumulate) < 1) {
    return cli::WrongOption("--batch, --width, --steps, --accumulate: expected 1 or more");
  }
  const double lr = absl::GetFlag(FLAGS_lr);
  HT_ASSIGN_OR_RETURN(const example::Setup setup,
                      example::SetUp(absl::GetFlag(FLAGS_amp), absl::GetFlag(FLAGS_device),
                                     absl::GetFlag(FLAGS_threads)));
  HT_ASSIGN_OR_RETURN(auto data, example::Dataset::Load(absl::GetFlag(FLAGS_data), "train"));
  Nets nets(width);
  DiscriminatorStep discriminator(nets, lr, setup.scales_loss());
  GeneratorStep generator(nets, lr, setup.scales_loss(), batch);
  Generation generation(nets);
  for (nn::Graph* graph :
       std::initializer_list<nn::Graph*>{&discriminator, &generator, &generation}) {
    setup.Apply(*graph);
    graph->config.seed = absl::GetFlag(FLAGS_seed);
  }
  HT_RETURN_IF_ERROR(Train(nets, discriminator, generator, data, batch));
  const std::string sheet = absl::GetFlag(FLAGS_sheet);
  if (sheet.empty()) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(auto images, generation({}));
  return WriteSheet(sheet, images[0]);
}

int main(int argc, char** argv) {
  return example::RunProgram("dcgan", "trains a DCGAN on Fashion-MNIST with mixed precision", argc,
                             argv, &Run);
}
