// Trains a small GPT that reads a text character by character, with mixed precision: one that every
// Debian has, or any other. The last tenth of the text is kept apart, to see what was learnt.
// Progress goes to standard error; the last line of standard output is one JSON object. Exit status:
// 0 trained, 1 failed, 2 an option has a wrong value or memory is short.
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "absl/flags/flag.h"
#include "halftone/cli/exit_status.h"
#include "halftone/core/philox.h"
#include "halftone/examples/models/transformer.h"
#include "halftone/examples/support/device_choice.h"
#include "halftone/examples/support/setup.h"
#include "halftone/examples/support/text.h"
#include "halftone/halftone.h"

ABSL_FLAG(std::string, text, "/usr/share/common-licenses", "file to learn, or folder of files");
ABSL_FLAG(std::string, amp, "auto", halftone::example::kAmpHelp);
ABSL_FLAG(std::string, device, "cpu", halftone::example::kDeviceHelp);
ABSL_FLAG(int, steps, 500, "training steps");
ABSL_FLAG(int, batch, 16, "sequences per step");
ABSL_FLAG(int, length, 64, "characters of a sequence");
ABSL_FLAG(int, width, 128, "of the model, a multiple of 32: heads have 32");
ABSL_FLAG(int, blocks, 4, "of the model");
ABSL_FLAG(double, lr, 1e-3, "learning rate of AdamW");
ABSL_FLAG(uint64_t, seed, 0, "of weights and of the order of the sequences");
ABSL_FLAG(int, threads, 0, "CPU threads; 0: all");
ABSL_FLAG(std::string, log, "", "folder for loss, scale, ... as TensorBoard reads them");

namespace nn = halftone::nn;
namespace amp = halftone::amp;
namespace cli = halftone::cli;
namespace models = halftone::models;
namespace optim = halftone::optim;
namespace example = halftone::example;
using halftone::Tensor;

// In: ids [N,L], those that follow [N L]. Out: the mean of -ln p over them.
class CharGpt : public nn::Graph {
 public:
  CharGpt(const models::TransformerOptions& options, double lr, bool scale_loss)
      : nn::Graph("char_gpt"), net_(options) {
    add_module("net", net_);
    add_optimizer(optim::AdamW(parameters(), {.lr = lr}));
    scaler = set_grad_scaler(amp::GradScaler({.growth_interval = 200, .enabled = scale_loss}));
  }
  // Both tables as GPT-2 has them, normal(0, 0.02): the scores come from the table of characters too,
  // and begin alike where its numbers are small.
  absl::Status MakeTables(uint64_t seed) {
    halftone::PhiloxStream random(seed, 2);
    for (nn::Parameter table : {net_.tokens.weight, net_.positions.weight}) {
      Tensor values = Tensor::Empty(halftone::DType::kF32, table.shape());
      for (int64_t i = 0; i < values.num_elements(); ++i) values.set(i, 0.02 * random.Normal());
      HT_RETURN_IF_ERROR(table.set_value(values));
    }
    return absl::OkStatus();
  }
  nn::Values build(const nn::Values& in) override {
    nn::Value loss = nn::cross_entropy(nn::flatten(net_(in[0]), 0, 1), in[1]);
    loss.backward();
    return {loss};
  }
  nn::ScalerHandle scaler;

 private:
  models::Transformer net_;
};

// Of the last 50 numbers, or of all if there are less.
double RecentMean(const std::vector<double>& numbers) {
  const auto count = static_cast<std::ptrdiff_t>(std::min<size_t>(numbers.size(), 50));
  return std::accumulate(numbers.end() - count, numbers.end(), 0.0) / static_cast<double>(count);
}

// The mean loss over windows side by side in the part from `first`, in evaluation mode.
absl::StatusOr<double> Evaluate(CharGpt& model, const example::Text& text, int64_t first,
                                int64_t batch, int64_t length) {
  std::vector<int64_t> starts;
  double loss = 0;
  int64_t batches = 0;
  model.eval();
  for (; first + length < text.size(); first += length) {
    starts.push_back(first);
    if (static_cast<int64_t>(starts.size()) < batch) continue;
    HT_ASSIGN_OR_RETURN(auto out, model(text.Windows(starts, length)));
    loss += out[0].item();
    ++batches;
    starts.clear();
  }
  model.train();
  return loss / static_cast<double>(batches);
}

absl::Status Train(CharGpt& model, const example::Text& text, int64_t batch, int64_t length,
                   uint64_t seed) {
  const int64_t end = text.size() * 9 / 10;  // of what is trained on
  if (end <= length || text.size() - end <= batch * length) {
    return halftone::InvalidArgument(absl::GetFlag(FLAGS_text), ": has ", text.size(),
                                     " characters; expected more than ", 10 * (batch * length + 1),
                                     " for sequences of ", length, " in batches of ", batch);
  }
  nn::RunLog log(model, absl::GetFlag(FLAGS_log), {.items = "sequences"});
  halftone::PhiloxStream random(seed, 1);
  std::vector<double> losses;
  const int steps = absl::GetFlag(FLAGS_steps);
  for (int step = 1; step <= steps; ++step) {
    std::vector<int64_t> starts(batch);
    for (int64_t& start : starts) start = static_cast<int64_t>(random.Below(end - length));
    HT_ASSIGN_OR_RETURN(auto out, model(text.Windows(starts, length)));
    log.add_step({{"train/loss", out[0]}}, batch);
    losses.push_back(out[0].item());
    if (step % 50 == 0) {
      std::fprintf(stderr, "step %d/%d: loss %.4f\n", step, steps, RecentMean(losses));
    }
  }
  HT_ASSIGN_OR_RETURN(const double loss, Evaluate(model, text, end, batch, length));
  log.add_scalar("test/loss", loss);
  std::printf("amp: %s\n", model.amp_summary().c_str());
  for (const std::string& note : model.notes()) std::printf("note: %s\n", note.c_str());
  std::printf(
      "{\"train_loss\": %.5f, \"test_loss\": %.5f, \"characters\": %lld, \"device\": \"%s\", \"amp\": \"%s\", "
      "\"final_scale\": %.9g, \"skipped_steps\": %lld, \"steps\": %d}\n",
      RecentMean(losses), loss, static_cast<long long>(text.num_characters()),
      model.device().ToString().c_str(), absl::GetFlag(FLAGS_amp).c_str(), model.scaler.scale(),
      static_cast<long long>(model.scaler.skipped_count()), steps);
  return absl::OkStatus();
}

absl::Status Run() {
  const int batch = absl::GetFlag(FLAGS_batch), length = absl::GetFlag(FLAGS_length);
  const int width = absl::GetFlag(FLAGS_width), blocks = absl::GetFlag(FLAGS_blocks);
  if (batch < 1 || length < 1 || absl::GetFlag(FLAGS_steps) < 1 || blocks < 1) {
    return cli::WrongOption("--batch, --length, --steps, --blocks: expected 1 or more");
  }
  if (width < 32 || width % 32 != 0) {
    return cli::WrongOption("--width: expected a multiple of 32");
  }
  HT_ASSIGN_OR_RETURN(const example::Setup setup,
                      example::SetUp(absl::GetFlag(FLAGS_amp), absl::GetFlag(FLAGS_device),
                                     absl::GetFlag(FLAGS_threads)));
  HT_ASSIGN_OR_RETURN(const example::Text text, example::Text::Load(absl::GetFlag(FLAGS_text)));
  CharGpt model({.vocabulary = text.num_characters(),
                 .positions = length,
                 .width = width,
                 .heads = width / 32,
                 .inner = 4 * width,
                 .blocks = blocks,
                 .causal = true,
                 .pre_norm = true},
                absl::GetFlag(FLAGS_lr), setup.scales_loss());
  setup.Apply(model);
  model.config.seed = absl::GetFlag(FLAGS_seed);
  HT_RETURN_IF_ERROR(model.MakeTables(model.config.seed));
  return Train(model, text, batch, length, model.config.seed);
}

int main(int argc, char** argv) {
  return example::RunProgram("char_gpt", "trains a small GPT on the characters of a text", argc,
                             argv, &Run);
}
