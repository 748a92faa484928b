// A program outside Halftone's tree: an operator of its own, with a kernel, inside a graph of its
// own.
//
// The operator is softsign, y = x / (1 + |x|). Its record gives types, the gradient, and a
// decomposition into simpler operators, which runs on devices that have no kernel for it; the
// kernel below runs it on the CPU in one loop.
#include <cmath>
#include <cstdio>
#include <utility>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/op.h"
#include "halftone/graph/nn/op.h"
#include "halftone/halftone.h"
#include "halftone/kernels/kernel.h"

namespace ir = halftone::ir;
namespace kernels = halftone::kernels;
namespace nn = halftone::nn;
namespace optim = halftone::optim;
using halftone::DType;
using halftone::Tensor;

namespace {

ir::OpRecord Softsign() {
  ir::OpRecord op;
  op.name = "softsign";
  op.doc = "y = x / (1 + |x|)";
  op.inputs = {{"x", {DType::kF32}, "any shape"}};
  op.outputs = {{"y", "like x"}};
  op.infer = [](const ir::InferContext& c) -> absl::StatusOr<std::vector<ir::ValueType>> {
    return std::vector<ir::ValueType>{c.inputs[0]};
  };
  op.amp = {.f16 = ir::AmpClass::kInfer, .bf16 = ir::AmpClass::kInfer, .reason = "bounded by 1"};
  op.fusion = ir::FusionClass::kElementwise;
  op.layout.kind = ir::LayoutClass::kFollows;
  op.in_place = {{0, 0}};
  op.gradient = [](ir::GradContext& c) {
    const ir::Expr d = c.b.Op("abs", {c.in(0)}) + 1.0;
    c.set_dx(0, c.dy(0) / (d * d));
  };
  op.gradient_ops = {"abs", "add", "mul", "div"};
  op.decompose = [](ir::Builder& b, const std::vector<ir::Expr>& in, const ir::Attributes&) {
    return std::vector<ir::Expr>{in[0] / (b.Op("abs", {in[0]}) + 1.0)};
  };
  return op;
}

class SoftsignKernel : public kernels::Kernel {
 public:
  explicit SoftsignKernel(int64_t size) : size_(size) {}
  void Run(const kernels::KernelArgs& args) override {
    const auto* x = static_cast<const float*>(args.inputs[0]);
    auto* y = static_cast<float*>(args.outputs[0]);
    halftone::ParallelFor(0, size_, 4096, [x, y](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) y[i] = x[i] / (1 + std::fabs(x[i]));
    });
  }

 private:
  int64_t size_;
};

absl::Status RegisterSoftsign() {
  HT_RETURN_IF_ERROR(ir::RegisterOp(Softsign()));
  kernels::KernelCandidate candidate;
  candidate.name = "cpu:outside:softsign";
  candidate.op = "softsign";
  candidate.dtypes = {DType::kF32};
  candidate.supports = [](const ir::Node&) { return absl::OkStatus(); };
  candidate.create = [](const ir::Node& node) -> absl::StatusOr<std::unique_ptr<kernels::Kernel>> {
    return std::make_unique<SoftsignKernel>(node.output_type().num_elements());
  };
  kernels::KernelRegistry::Global().Add(std::move(candidate));
  return absl::OkStatus();
}

nn::Value softsign(const nn::Value& x, nn::Loc loc = nn::Loc::current()) {
  return nn::Op("softsign", {x}, {}, loc);
}

// Fits softsign(z), z = w x + b, to a target. Returns the loss, z, softsign(z) and its derivative.
class Fit : public nn::Graph {
 public:
  explicit Fit(halftone::Device device) : fc_(1, 1) {
    to(device);
    add_module("fc", fc_);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.5}));
  }
  nn::Values build(const nn::Values& in) override {
    const nn::Value z = fc_(in[0]);
    const nn::Value y = softsign(z);
    const nn::Value loss = nn::mse_loss(y, in[1]);
    loss.backward();
    return {loss, z, y, nn::gradients(nn::sum(y), {z})[0]};
  }

 private:
  nn::Linear fc_;
};

// Trains, and compares every output with the formula.
bool Train(halftone::Device device, const char* kernel) {
  Fit fit(device);
  const Tensor x = Tensor::Of(DType::kF32, {5, 1}, {-2, -1, 0, 1, 2});
  // What w = 2, b = -1 give.
  const Tensor t = Tensor::Of(DType::kF32, {5, 1}, {-5. / 6, -3. / 4, -1. / 2, 1. / 2, 3. / 4});
  double first = 0, loss = 0, worst = 0;
  for (int step = 0; step < 500; ++step) {
    const auto out = fit({x, t});
    if (!out.ok()) {
      std::fprintf(stderr, "%s\n", out.status().ToString().c_str());
      return false;
    }
    const Tensor &z = (*out)[1], &y = (*out)[2], &dz = (*out)[3];
    loss = (*out)[0].item();
    if (step == 0) first = loss;
    for (int64_t i = 0; i < z.num_elements(); ++i) {
      const double d = 1 + std::fabs(z.at(i));
      worst = std::fmax(worst, std::fabs(y.at(i) - z.at(i) / d));
      worst = std::fmax(worst, std::fabs(dz.at(i) - 1 / (d * d)));
    }
  }
  std::printf("%s: loss %.3g -> %.3g, off the formula by %.1g\n", device.ToString().c_str(), first,
              loss, worst);
  const bool found = fit.kernel_log().find(kernel) != std::string::npos;
  if (!found) std::fprintf(stderr, "no %s in:\n%s", kernel, fit.kernel_log().c_str());
  return found && worst < 1e-6 && loss < 1e-3 * first;
}

int Main() {
  if (const absl::Status status = RegisterSoftsign(); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  std::printf("Halftone %s\n", halftone::Version());
  const bool own = Train(halftone::Device::Cpu(), "cpu:outside:softsign");
  const bool decomposed = Train(halftone::Device::Reference(), "reference:abs");
  return own && decomposed ? 0 : 1;
}

}  // namespace

int main() { return Main(); }
