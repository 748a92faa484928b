// Trains a small convolutional network, or ResNet-18, on Fashion-MNIST, or any IDX data set of that
// form, with mixed precision. Progress goes to standard error; the last line of standard output is one JSON
// object. Exit status: 0 trained, 1 failed, 2 an option has a wrong value or memory is short.
#include <algorithm>
#include <cstdio>
#include <limits>
#include <new>

#include "absl/flags/flag.h"
#include "absl/types/optional.h"
#include "halftone/cli/exit_status.h"
#include "halftone/examples/models/resnet.h"
#include "halftone/examples/support/checkpoints.h"
#include "halftone/examples/support/dataset.h"
#include "halftone/examples/support/device_choice.h"
#include "halftone/examples/support/progress.h"
#include "halftone/examples/support/setup.h"
#include "halftone/halftone.h"

ABSL_FLAG(std::string, model, "cnn", "cnn or resnet18");
ABSL_FLAG(std::string, amp, "auto", halftone::example::kAmpHelp);
ABSL_FLAG(std::string, weights, "declared",
          "how parameters and moments are kept: declared (f32), bf16_stochastic or bf16_kahan");
ABSL_FLAG(std::string, device, "cpu", halftone::example::kDeviceHelp);
ABSL_FLAG(int, epochs, 3, "passes over the training images");
ABSL_FLAG(int, batch, 128, "images per step, of all ranks together");
ABSL_FLAG(bool, distributed, false, "train together with the other processes that mpirun started");
ABSL_FLAG(absl::optional<double>, lr, absl::nullopt,
          "learning rate of Adam; not given: 1e-3, or with --resume that of the checkpoint");
ABSL_FLAG(std::string, data, "/usr/share/datasets/fashion-mnist", "folder with the four IDX files");
ABSL_FLAG(std::string, dump, "", "folder for the text of the graph after each pass");
ABSL_FLAG(uint64_t, seed, 0, "of weights and shuffling");
ABSL_FLAG(int, threads, 0, "CPU threads; 0: all");
ABSL_FLAG(uint32_t, limit, 0, "train and test on the first images only; 0: all");
ABSL_FLAG(std::string, checkpoint, "", "file for the state of the run, written after each epoch");
ABSL_FLAG(uint32_t, every, 0, "also write it every so many steps");
ABSL_FLAG(bool, resume, false, "go on from --checkpoint, if it exists");
ABSL_FLAG(std::string, log, "", "folder for loss, accuracy, ... as TensorBoard reads them");

namespace nn = halftone::nn;
namespace amp = halftone::amp;
namespace optim = halftone::optim;
namespace example = halftone::example;
namespace distributed = halftone::distributed;
using halftone::DType;

// In: images u8 [N,28,28], labels i64 [N]. Out: mean loss, number of right answers.
class Classifier : public nn::Graph {
 public:
  Classifier(const std::string& name, nn::Module& net, double lr, optim::Weights weights,
             bool scale_loss)
      : nn::Graph(name), net_(net) {
    add_module("net", net_);
    optimizer = add_optimizer(optim::Adam(parameters(), {.lr = lr, .weights = weights}));
    scaler = set_grad_scaler(amp::GradScaler({.growth_interval = 500, .enabled = scale_loss}));
  }

  nn::Values build(const nn::Values& in) override {
    nn::Value pixels = nn::unsqueeze(nn::cast(in[0], DType::kF32) / 255.0, 1);
    nn::Value logits = net_(pixels);
    nn::Value loss = nn::cross_entropy(logits, in[1]);
    loss.backward();
    nn::Value right = nn::equal(nn::argmax(logits, 1), in[1]);
    return {loss, nn::sum(nn::cast(right, DType::kF32))};
  }

  nn::OptimizerHandle optimizer;
  nn::ScalerHandle scaler;

 private:
  nn::Module& net_;
};

// Null: there is none of this name.
std::unique_ptr<nn::Module> MakeNet(const std::string& name) {
  if (name == "resnet18") return std::make_unique<halftone::models::ResNet>(18, 10, 1);
  if (name != "cnn") return nullptr;
  return std::make_unique<nn::Sequential>(
      nn::Conv2d(1, 32, 3, {.padding = 1}), nn::ReLU(), nn::Conv2d(32, 64, 3, {.padding = 1}),
      nn::ReLU(), nn::MaxPool2d(2), nn::Flatten(), nn::Linear(64 * 14 * 14, 128), nn::ReLU(),
      nn::Linear(128, 10));
}

// Share of right answers over a data set, in evaluation mode; each rank looks at its part.
absl::StatusOr<double> Evaluate(Classifier& model, const example::Dataset& data, int64_t batch) {
  model.eval();
  double right = 0;
  const int64_t begin = data.size() * distributed::Rank() / distributed::Size();
  const int64_t end = data.size() * (distributed::Rank() + 1) / distributed::Size();
  for (int64_t first = begin; first < end; first += batch) {
    HT_ASSIGN_OR_RETURN(auto out, model(data.Batch(first, std::min(batch, end - first))));
    right += out[1].item();
  }
  model.train();
  HT_ASSIGN_OR_RETURN(right, distributed::Sum(right));
  return right / static_cast<double>(data.size());
}

// From `at` to the end.
absl::Status TrainFrom(example::Cursor at, Classifier& model, example::Dataset& train,
                       const example::Dataset& test, example::Checkpoints& checkpoints,
                       nn::RunLog& log, int epochs, int64_t batch) {
  example::Progress progress(epochs, (train.size() + batch - 1) / batch);
  double accuracy = 0;
  const int ranks = distributed::Size();
  HT_ASSIGN_OR_RETURN(auto sampler, distributed::Sampler::Make(
                                        train.size(), {.batch = batch / ranks,
                                                       .seed = model.config.seed,
                                                       .tail = distributed::Tail::kShorten}));
  if (at.epoch >= epochs) {
    HT_ASSIGN_OR_RETURN(accuracy, Evaluate(model, test, batch));
  }
  for (; at.epoch < epochs; at = {at.epoch + 1, 0}) {
    sampler.SetEpoch(static_cast<uint64_t>(at.epoch));
    for (int64_t step = (at.image + batch - 1) / batch; step < sampler.steps(); ++step) {
      const absl::Span<const int64_t> own = sampler.Batch(step);
      const auto count = static_cast<int64_t>(own.size()) * ranks;
      const double scale = model.scaler.scale();
      HT_ASSIGN_OR_RETURN(auto out, model(train.Gather(own)));
      log.add_step(
          {{"train/loss", out[0]}, {"train/accuracy", out[1], 1 / static_cast<double>(own.size())}},
          count);
      at.image += count;
      if (checkpoints.IsDue()) log.flush();  // a killed run resumes without a hole in its curves
      HT_RETURN_IF_ERROR(checkpoints.AfterStep(model, at));
      progress.Step(at.epoch, count, out[0].item());
      if (model.scaler.scale() != scale) progress.ScaleChanged(scale, model.scaler.scale());
    }
    HT_ASSIGN_OR_RETURN(accuracy, Evaluate(model, test, batch));
    progress.EpochDone(at.epoch, accuracy);
    log.add_scalar("test/accuracy", accuracy);
    log.flush();
    HT_RETURN_IF_ERROR(checkpoints.Save(model, {at.epoch + 1, 0}));
    log.skip_time();
  }
  if (distributed::Rank() > 0) return absl::OkStatus();  // one result of all
  std::printf("amp: %s\n", model.amp_summary().c_str());
  for (const std::string& note : model.notes()) std::printf("note: %s\n", note.c_str());
  if (!model.config.dump_dir.empty())
    std::printf("graph after each pass: %s\n", model.config.dump_dir.c_str());
  std::printf(
      "{\"test_accuracy\": %.4f, \"images_per_s\": %.1f, \"device\": \"%s\", \"amp\": \"%s\", "
      "\"weights\": \"%s\", "
      "\"final_scale\": %.9g, "
      "\"skipped_steps\": %lld, \"steps\": %lld, \"peak_arena_mib\": %.1f, \"peak_rss_mib\": "
      "%.1f}\n",
      accuracy, progress.images_per_second(), model.device().ToString().c_str(),
      absl::GetFlag(FLAGS_amp).c_str(), absl::GetFlag(FLAGS_weights).c_str(), model.scaler.scale(),
      static_cast<long long>(model.scaler.skipped_count()),
      static_cast<long long>(progress.steps()),
      static_cast<double>(model.arena_bytes()) / (1 << 20), example::PeakRssMib());
  return absl::OkStatus();
}

absl::Status Train(Classifier& model, int epochs, int64_t batch) {
  const std::string folder = absl::GetFlag(FLAGS_data);
  const int64_t limit = absl::GetFlag(FLAGS_limit);
  auto train_part = example::Dataset::Load(folder, "train", limit);
  HT_RETURN_IF_ERROR(distributed::Agree(train_part.status()));
  auto test_part = example::Dataset::Load(folder, "t10k", limit);
  HT_RETURN_IF_ERROR(distributed::Agree(test_part.status()));
  example::Dataset &train = *train_part, &test = *test_part;
  example::Checkpoints checkpoints(absl::GetFlag(FLAGS_checkpoint), absl::GetFlag(FLAGS_every),
                                   halftone::Concat("seed ", model.config.seed, ", batch ", batch,
                                                    ", ", train.size(), " images"));
  HT_ASSIGN_OR_RETURN(auto at, checkpoints.Start(model, absl::GetFlag(FLAGS_resume)));
  // A checkpoint has brought its own.
  const double saved_lr = model.optimizer.lr();
  if (const auto lr = absl::GetFlag(FLAGS_lr)) {
    HT_RETURN_IF_ERROR(model.optimizer.set_lr(*lr));
    if (static_cast<float>(*lr) != static_cast<float>(saved_lr)) {
      std::fprintf(stderr, "learning rate %g; %g in the checkpoint\n", *lr, saved_lr);
    }
  }
  absl::Status status;
  try {
    nn::RunLog log(model, distributed::Rank() == 0 ? absl::GetFlag(FLAGS_log) : "");
    status = TrainFrom(at, model, train, test, checkpoints, log, epochs, batch);
  } catch (const std::bad_alloc&) {
    status = halftone::ResourceExhausted("the system has no more memory");
  }
  return checkpoints.WithWhatIsSaved(status);
}

absl::Status Run() {
  namespace cli = halftone::cli;
  const std::string name = absl::GetFlag(FLAGS_model);
  const double lr = absl::GetFlag(FLAGS_lr).value_or(1e-3);
  const int epochs = absl::GetFlag(FLAGS_epochs), batch = absl::GetFlag(FLAGS_batch);
  const std::unique_ptr<nn::Module> net = MakeNet(name);
  if (net == nullptr) return cli::WrongOption("--model: expected cnn or resnet18");
  if (epochs < 1) return cli::WrongOption("--epochs: expected 1 or more");
  if (batch < 1) return cli::WrongOption("--batch: expected 1 or more");
  if (!(lr >= 0 && lr <= std::numeric_limits<float>::max())) {
    return cli::WrongOption("--lr: expected 0 or more and finite in f32");
  }
  if (absl::GetFlag(FLAGS_distributed)) HT_RETURN_IF_ERROR(distributed::Init());
  if (batch % distributed::Size() != 0) {
    return cli::WrongOption("--batch: expected a multiple of the ", distributed::Size(), " ranks");
  }
  HT_ASSIGN_OR_RETURN(const example::Setup setup,
                      example::SetUp(absl::GetFlag(FLAGS_amp), absl::GetFlag(FLAGS_device),
                                     absl::GetFlag(FLAGS_threads)));
  const auto weights = optim::ParseWeights(absl::GetFlag(FLAGS_weights));
  if (!weights.ok()) return cli::WrongOption("--weights: ", halftone::Message(weights.status()));
  Classifier model("fashion_" + name, *net, lr, *weights, setup.scales_loss());
  setup.Apply(model);
  model.config.seed = absl::GetFlag(FLAGS_seed);
  model.config.dump_dir = distributed::Rank() == 0 ? absl::GetFlag(FLAGS_dump) : "";
  if (absl::GetFlag(FLAGS_distributed)) model.config.data_parallel();
  return Train(model, epochs, batch);
}

int main(int argc, char** argv) {
  return example::RunProgram("fashion_mnist",
                             "trains a convolutional network on Fashion-MNIST with mixed precision",
                             argc, argv, &Run);
}
