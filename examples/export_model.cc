// Writes one of examples/models as an ONNX model, with an input and what the model makes of it:
// DIR/model.onnx, DIR/in.npy, DIR/out.npy. Exit status: 0, 1 failed, 2 an option has a wrong value.
#include <cmath>

#include "absl/flags/flag.h"
#include "absl/flags/usage.h"
#include "halftone/cli/command_line.h"
#include "halftone/cli/exit_status.h"
#include "halftone/core/io/npy.h"
#include "halftone/examples/models/resnet.h"
#include "halftone/examples/models/transformer.h"
#include "halftone/halftone.h"

ABSL_FLAG(std::string, model, "resnet18", "resnet18, resnet50, bert_base or gpt2_small");
ABSL_FLAG(std::string, out, ".", "folder for the files");
ABSL_FLAG(std::string, weights, "", "checkpoint; empty: initial values");
ABSL_FLAG(int64_t, batch, 1, "images or sequences");
ABSL_FLAG(int64_t, length, 128, "tokens of a sequence");

namespace nn = halftone::nn;
namespace models = halftone::models;
using halftone::DType;
using halftone::Shape;
using halftone::Tensor;

class Evaluation : public nn::Graph {
 public:
  explicit Evaluation(nn::Module& module) : nn::Graph("model"), module_(module) {
    add_module("model", module_);
    eval();
  }
  nn::Values build(const nn::Values& in) override { return {module_(in[0])}; }

 private:
  nn::Module& module_;
};

absl::Status Export(nn::Module& module, const Tensor& in) {
  Evaluation graph(module);
  const std::string folder = absl::GetFlag(FLAGS_out) + "/", weights = absl::GetFlag(FLAGS_weights);
  if (!weights.empty()) HT_RETURN_IF_ERROR(graph.load_checkpoint(weights).status());
  HT_RETURN_IF_ERROR(graph.export_onnx(folder + "model.onnx", {in}));
  HT_ASSIGN_OR_RETURN(const std::vector<Tensor> out, graph({in}));
  HT_RETURN_IF_ERROR(halftone::io::WriteNpy(folder + "in.npy", in));
  return halftone::io::WriteNpy(folder + "out.npy", out[0]);
}

// A picture of waves, or a text of numbers.
Tensor Input(bool is_text, int64_t batch, int64_t length) {
  Tensor in = is_text ? Tensor::Empty(DType::kI64, Shape{batch, length})
                      : Tensor::Empty(DType::kF32, Shape{batch, 3, 224, 224});
  for (int64_t i = 0; i < in.num_elements(); ++i) {
    in.set(i, is_text ? static_cast<double>(i * 7919 % 30000) : std::sin(0.01 * double(i)));
  }
  return in;
}

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("export_model --model resnet50 --out DIR: writes an ONNX model");
  const auto arguments = halftone::cli::ParseCommandLine(argc, argv);
  const std::string name = absl::GetFlag(FLAGS_model);
  const int64_t batch = absl::GetFlag(FLAGS_batch), length = absl::GetFlag(FLAGS_length);
  const auto fail = [](int code, const std::string& message) {
    halftone::cli::PrintMessage("export_model", message);
    return code;
  };
  if (arguments.size() != 1) return fail(2, "expected flags only");
  if (batch < 1 || length < 1) return fail(2, "--batch, --length: expected 1 or more");
  absl::Status status;
  if (name == "resnet18" || name == "resnet50") {
    models::ResNet net(name == "resnet18" ? 18 : 50);
    status = Export(net, Input(false, batch, length));
  } else if (name == "bert_base" || name == "gpt2_small") {
    models::Transformer net(name == "bert_base" ? models::BertBase() : models::Gpt2Small());
    status = Export(net, Input(true, batch, length));
  } else {
    return fail(2, "--model=" + name + ": expected resnet18, resnet50, bert_base or gpt2_small");
  }
  return status.ok() ? 0 : fail(1, halftone::Message(status));
}
