// A program outside Halftone's tree that extends it: an operator with a gradient and a kernel
// (squash.h), a pass (fuse_squash.h) and a module with two inputs (gate.h), in graphs of its
// own. It looks whether each is at work and gives the right values; exit status 0 if so.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "fuse_squash.h"
#include "gate.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/halftone.h"
#include "squash.h"

namespace ir = halftone::ir;
namespace nn = halftone::nn;
namespace optim = halftone::optim;
namespace passes = halftone::passes;
using halftone::Device;
using halftone::DType;
using halftone::Tensor;

namespace outside {
namespace {

bool Check(bool holds, const char* what) {
  if (!holds) std::fprintf(stderr, "not so: %s\n", what);
  return holds;
}

bool Contains(const std::string& text, const char* part) {
  return text.find(part) != std::string::npos;
}

// The outputs of one step; none, with a message, after an error.
std::vector<Tensor> Call(nn::Graph& graph, const std::vector<Tensor>& in) {
  auto out = graph(in);
  if (out.ok()) return *std::move(out);
  std::fprintf(stderr, "%s\n", out.status().ToString().c_str());
  return {};
}

// Fits squash(z), z = w x + b, to a target. Returns the loss, z, squash(z) and its derivative.
class Fit : public nn::Graph {
 public:
  explicit Fit(Device device) : fc_(1, 1) {
    to(device);
    add_module("fc", fc_);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.5}));
  }
  nn::Values build(const nn::Values& in) override {
    const nn::Value z = fc_(in[0]);
    const nn::Value y = squash(z);
    const nn::Value loss = nn::mse_loss(y, in[1]);
    loss.backward();
    return {loss, z, y, nn::gradients(nn::sum(y), {z})[0]};
  }

 private:
  nn::Linear fc_;
};

// The operator: every output is compared with the formula while it trains.
bool OperatorTrains(Device device, const char* kernel) {
  Fit fit(device);
  const Tensor x = Tensor::Of(DType::kF32, {5, 1}, {-2, -1, 0, 1, 2});
  // What w = 2, b = -1 give.
  const Tensor t = Tensor::Of(DType::kF32, {5, 1}, {-5. / 6, -3. / 4, -1. / 2, 1. / 2, 3. / 4});
  double first = 0, loss = 0, worst = 0;
  for (int step = 0; step < 500; ++step) {
    const std::vector<Tensor> out = Call(fit, {x, t});
    if (out.empty()) return false;
    const Tensor &z = out[1], &y = out[2], &dz = out[3];
    loss = out[0].item();
    if (step == 0) first = loss;
    for (int64_t i = 0; i < z.num_elements(); ++i) {
      const double d = 1 + std::fabs(z.at(i));
      worst = std::fmax(worst, std::fabs(y.at(i) - z.at(i) / d));
      worst = std::fmax(worst, std::fabs(dz.at(i) - 1 / (d * d)));
    }
  }
  std::printf("%s: loss %.3g -> %.3g, off the formula by %.1g\n", device.ToString().c_str(), first,
              loss, worst);
  return Check(Contains(fit.kernel_log(), kernel), kernel) &&
         Check(worst < 1e-6, "y = x / (1 + |x|), dy/dx = 1 / (1 + |x|)^2") &&
         Check(loss < 1e-3 * first, "the loss falls to a thousandth");
}

// Mixed precision treats the operator as its record says: in 16 bit behind a linear, which pays.
class Low : public nn::Graph {
 public:
  Low() : fc_(64, 64, {.bias = false}) {
    add_module("fc", fc_);
    config.enable_amp(true, {.dtype = DType::kBF16, .trim = false});
    config.amp_low_outputs = true;
  }
  nn::Values build(const nn::Values& in) override { return {squash(fc_(in[0]))}; }
  nn::Linear& fc() { return fc_; }

 private:
  nn::Linear fc_;
};

bool MixedPrecisionKnowsTheOperator() {
  Low low;
  // w = 3 I: rows of ones become 3, and squash(3) = 3/4, which bf16 has exactly.
  Tensor identity = Tensor::Zeros(DType::kF32, {64, 64});
  for (int64_t i = 0; i < 64; ++i) identity.set(i * 65, 3);
  if (!Check(low.fc().weight.set_value(identity).ok(), "the weight is set")) return false;
  const std::vector<Tensor> out = Call(low, {Tensor::Full(DType::kF32, {8, 64}, 1)});
  if (out.empty()) return false;
  std::printf("%s", low.amp_table().c_str());
  bool inferred = false;
  for (const auto& node : low.compiled_graph()->nodes()) {
    if (node->op().name == "squash") inferred = node->amp.amp_class == ir::AmpClass::kInfer;
  }
  return Check(inferred, "squash is in the class of its record") &&
         Check(out[0].dtype() == DType::kBF16, "squash runs in bf16, as the linear does") &&
         Check(out[0].at(0) == 0.75, "squash(3) = 3/4");
}

// The pass: the formula, written with functions of Halftone, runs as one kernel of ours.
class Formula : public nn::Graph {
 public:
  Formula() : nn::Graph("formula") { config.add_pass(passes::Stage::kForward, MakeFuseSquash()); }
  nn::Values build(const nn::Values& in) override {
    const nn::Value y = in[0] / (nn::abs(in[0]) + 1);
    return {y, nn::gradients(nn::sum(y), {in[0]})[0]};
  }
};

bool PassRuns() {
  Formula formula;
  const std::vector<Tensor> out = Call(formula, {Tensor::Of(DType::kF32, {3}, {-1, 0, 3})});
  if (out.empty()) return false;
  std::printf("%s", formula.kernel_log().c_str());
  const Tensor &y = out[0], &dx = out[1];
  return Check(Contains(formula.traced_text(), "div"), "build() has the formula") &&
         Check(Contains(formula.kernel_log(), "cpu:outside:squash"), "the pass made it one op") &&
         Check(y.at(0) == -0.5 && y.at(1) == 0 && y.at(2) == 0.75, "y = x / (1 + |x|)") &&
         Check(dx.at(0) == 0.25 && dx.at(1) == 1 && dx.at(2) == 1. / 16, "its derivative");
}

// The module: with a gate of 1/2 the result is the mean of its inputs.
class Mean : public nn::Graph {
 public:
  Mean() : gate_(2) { add_module("gate", gate_); }
  nn::Values build(const nn::Values& in) override { return {gate_.Mix(in[0], in[1])}; }
  Gate& gate() { return gate_; }

 private:
  Gate gate_;
};

bool ModuleTakesTwoInputs() {
  Mean mean;
  for (const auto& [name, parameter] : mean.gate().named_parameters()) {
    nn::Parameter p = parameter;
    if (!Check(p.set_value(Tensor::Zeros(p.dtype(), p.shape())).ok(), name.c_str())) return false;
  }
  const std::vector<Tensor> out = Call(
      mean, {Tensor::Of(DType::kF32, {1, 2}, {1, -4}), Tensor::Of(DType::kF32, {1, 2}, {3, 2})});
  if (out.empty()) return false;
  return Check(out[0].at(0) == 2 && out[0].at(1) == -1, "a gate of 1/2 gives the mean") &&
         Check(Contains(mean.traced_text(), "@\"gate\""), "its nodes are the module's");
}

int Main() {
  std::printf("Halftone %s\n", halftone::Version());
  if (const absl::Status status = RegisterSquash(); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  const bool own = OperatorTrains(Device::Cpu(), "cpu:outside:squash");
  const bool decomposed = OperatorTrains(Device::Reference(), "reference:abs");
  const bool low = MixedPrecisionKnowsTheOperator();
  const bool fused = PassRuns();
  const bool module = ModuleTakesTwoInputs();
  return own && decomposed && low && fused && module ? 0 : 1;
}

}  // namespace
}  // namespace outside

int main() { return outside::Main(); }
