#include "halftone/benchmarks/support/workloads.h"

#include <cmath>

#include "halftone/benchmarks/support/hash_values.h"
#include "halftone/examples/models/edsr.h"
#include "halftone/examples/models/resnet.h"
#include "halftone/examples/models/ssd512.h"
#include "halftone/examples/models/transformer.h"

namespace halftone::benchmarks {
namespace {

// Tags of the data; those of the parameters begin at 1.
constexpr uint32_t kX = 1000, kTarget = 1001, kBoxes = 1002;

std::unique_ptr<nn::Sequential> Mlp() {
  auto net = std::make_unique<nn::Sequential>();
  net->emplace<nn::Linear>(256, 128);
  net->emplace<nn::ReLU>();
  net->emplace<nn::Linear>(128, 10);
  return net;
}

std::unique_ptr<nn::Sequential> FashionCnn() {
  const nn::Conv2d::Options same{.padding = 1};
  auto net = std::make_unique<nn::Sequential>();
  net->emplace<nn::Conv2d>(1, 32, 3, same);
  net->emplace<nn::ReLU>();
  net->emplace<nn::Conv2d>(32, 64, 3, same);
  net->emplace<nn::ReLU>();
  net->emplace<nn::MaxPool2d>(2);
  net->emplace<nn::Flatten>();
  net->emplace<nn::Linear>(64 * 14 * 14, 128);
  net->emplace<nn::ReLU>();
  net->emplace<nn::Linear>(128, 10);
  return net;
}

nn::Value ClassLoss(nn::Module& model, const nn::Values& in) {
  return nn::cross_entropy(model(in[0]), in[1]);
}
// Over all positions.
nn::Value TokenLoss(nn::Module& model, const nn::Values& in) {
  return nn::cross_entropy(nn::flatten(model(in[0]), 0, 1), in[1]);
}
nn::Value ImageLoss(nn::Module& model, const nn::Values& in) {
  return nn::l1_loss(model(in[0]), in[1]);
}
nn::Value DetectionLoss(nn::Module& model, const nn::Values& in) {
  const nn::Values out = model(nn::Values{in[0]});
  return models::MultiboxLoss(out[0], out[1], in[1], in[2]);
}

optim::Optimizer Sgd(const optim::ParameterList& p) { return optim::SGD(p, {.lr = 1e-3}); }
template <int kPerTenThousand>
optim::Optimizer Momentum(const optim::ParameterList& p) {
  return optim::SGD(p, {.lr = kPerTenThousand * 1e-4, .momentum = 0.9, .weight_decay = 1e-4});
}
optim::Optimizer Adam(const optim::ParameterList& p) { return optim::Adam(p, {.lr = 1e-4}); }
optim::Optimizer AdamW(const optim::ParameterList& p) { return optim::AdamW(p, {.lr = 1e-4}); }

Workload MakeMlp(int64_t batch) {
  return {"mlp",     Mlp(), {HashUniform(kX, {batch, 256}, 1), HashLabels(kTarget, {batch}, 10)},
          ClassLoss, Sgd,   300};
}
Workload MakeFashionCnn(int64_t batch) {
  return {"fashion_cnn",
          FashionCnn(),
          {HashUniform(kX, {batch, 1, 28, 28}, 1), HashLabels(kTarget, {batch}, 10)},
          ClassLoss,
          Adam,
          20};
}
Workload MakeResNet50(int64_t batch) {
  return {"resnet50",
          std::make_unique<models::ResNet>(50),
          {HashUniform(kX, {batch, 3, 224, 224}, 1), HashLabels(kTarget, {batch}, 1000)},
          ClassLoss,
          Momentum<100>};
}
Workload MakeBertBase(int64_t batch) {
  return {"bert_base",
          std::make_unique<models::Transformer>(models::BertBase()),
          {HashLabels(kX, {batch, 128}, 30522), HashLabels(kTarget, {batch * 128}, 30522)},
          TokenLoss,
          AdamW};
}
Workload MakeGpt2Small(int64_t batch) {
  return {"gpt2_small",
          std::make_unique<models::Transformer>(models::Gpt2Small(256)),
          {HashLabels(kX, {batch, 256}, 50257), HashLabels(kTarget, {batch * 256}, 50257)},
          TokenLoss,
          AdamW};
}
Workload MakeEdsr(int64_t batch) {
  return {"edsr",
          std::make_unique<models::Edsr>(),
          {HashUniform(kX, {batch, 3, 48, 48}, 1), HashUniform(kTarget, {batch, 3, 192, 192}, 1)},
          ImageLoss,
          Adam,
          5};
}
Workload MakeSsd512(int64_t batch) {
  constexpr int64_t kAnchors = 18432;
  return {"ssd512_resnet50",
          std::make_unique<models::Ssd512>(),
          {HashUniform(kX, {batch, 3, 512, 512}, 1),
           SparseHashLabels(kTarget, {batch, kAnchors}, 21, 100),
           HashUniform(kBoxes, {batch, kAnchors, 4}, 1)},
          DetectionLoss,
          Momentum<1>};
}

struct Entry {
  const char* name;
  Workload (*make)(int64_t batch);
  int64_t batch;
};
constexpr Entry kEntries[] = {{"mlp", MakeMlp, 128},
                              {"fashion_cnn", MakeFashionCnn, 128},
                              {"resnet50", MakeResNet50, 16},
                              {"bert_base", MakeBertBase, 8},
                              {"gpt2_small", MakeGpt2Small, 4},
                              {"edsr", MakeEdsr, 8},
                              {"ssd512_resnet50", MakeSsd512, 2}};

bool EndsWith(const std::string& text, const std::string& end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

}  // namespace

int64_t Workload::num_parameters() const {
  int64_t count = 0;
  for (const auto& p : model->named_parameters()) count += p.second.shape().num_elements();
  return count;
}

absl::Status Workload::SetHashWeights() {
  uint32_t tag = 1;
  for (auto [path, p] : model->named_parameters()) {
    const Shape& shape = p.shape();
    int64_t fan_in = shape.num_elements();
    if (shape.rank() > 1) fan_in /= shape[0];
    const auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in)));
    const float center = shape.rank() == 1 && EndsWith(path, "weight") ? 1 : 0;
    HT_RETURN_IF_ERROR(p.set_value(HashUniform(tag++, shape, bound, center)));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Workload>> MakeWorkload(const std::string& name, int64_t batch) {
  std::string names;
  for (const Entry& entry : kEntries) {
    if (name == entry.name) {
      return std::make_unique<Workload>(entry.make(batch > 0 ? batch : entry.batch));
    }
    names += (names.empty() ? "" : ", ") + std::string(entry.name);
  }
  return InvalidArgument("\"", name, "\" is unknown; expected one of ", names);
}

absl::Status SetPrecision(nn::Graph& graph, const std::string& amp) {
  if (amp == "off") return absl::OkStatus();
  const auto low = ParseDType(amp);
  if (!low || !IsLow(*low)) {
    return InvalidArgument("--amp is \"", amp, "\"; expected off, bf16 or f16");
  }
  graph.config.enable_amp(true, {.dtype = low});
  return absl::OkStatus();
}

TrainingStep::TrainingStep(Workload& workload) : Graph(workload.name), workload_(workload) {
  add_module("model", *workload.model);
  add_optimizer(workload.optimizer(parameters()));
}
nn::Values TrainingStep::build(const nn::Values& in) {
  nn::Value loss = workload_.loss(*workload_.model, in);
  loss.backward();
  return {loss};
}

GradientStep::GradientStep(Workload& workload) : Graph(workload.name), workload_(workload) {
  add_module("model", *workload.model);
}
nn::Values GradientStep::build(const nn::Values& in) {
  const nn::Value loss = workload_.loss(*workload_.model, in);
  std::vector<nn::Value> wrt;
  for (const auto& p : workload_.model->named_parameters()) wrt.emplace_back(p.second);
  nn::Values out = {loss};
  for (const nn::Value& gradient : nn::gradients(loss, wrt)) out.push_back(gradient);
  return out;
}

}  // namespace halftone::benchmarks
