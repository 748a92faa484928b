// cross_entropy, cross_entropy_grad, mse_loss, l1_loss.
#include <cmath>
#include <limits>

#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

enum class LossReduction { kNone, kSum, kMean };

LossReduction LossReductionOf(const ir::Attributes& attrs) {
  const std::string& name = attrs.GetString("reduction");
  return name == "none"  ? LossReduction::kNone
         : name == "sum" ? LossReduction::kSum
                         : LossReduction::kMean;
}

struct CrossEntropySpec {
  explicit CrossEntropySpec(const RefNode& node)
      : split(node.in(0), ops::CheckedAxis(node.attrs.GetInt("axis"), node.in(0).rank())),
        smoothing(node.attrs.GetFloat("label_smoothing")),
        ignore_index(node.attrs.GetInt("ignore_index")),
        reduction(LossReductionOf(node.attrs)) {}

  // Whether target `line` counts; raises the fault if it is out of range.
  bool Counts(const RefCall& call, int64_t line) const {
    return call.LoadInt(1, line) != ignore_index && call.CheckIndex(line, split.size);
  }

  AxisSplit split;
  double smoothing;
  int64_t ignore_index;
  LossReduction reduction;
};

// The largest of a line's logits, and log(sum(exp(logit - max))).
struct LineStats {
  LineStats(const RefCall& call, const AxisSplit& split, int64_t line) {
    for (int64_t k = 0; k < split.size; ++k) max = std::fmax(max, call.Load(0, split(line, k)));
    double sum = 0;
    for (int64_t k = 0; k < split.size; ++k) sum += std::exp(call.Load(0, split(line, k)) - max);
    log_sum = std::log(sum);
  }
  // -log softmax of a logit.
  double Loss(double logit) const { return max - logit + log_sum; }
  double max = -std::numeric_limits<double>::infinity(), log_sum = 0;
};

RefRun MakeCrossEntropy(RefNode& node) {
  const CrossEntropySpec spec(node);
  return [=](const RefCall& call) {
    const AxisSplit& split = spec.split;
    double total = 0;
    int64_t counted = 0;
    for (int64_t line = 0; line < split.lines(); ++line) {
      const LineStats stats(call, split, line);
      double loss = 0;
      if (spec.Counts(call, line)) {
        const double hit = call.Load(0, split(line, call.LoadInt(1, line)));
        loss = (1 - spec.smoothing) * stats.Loss(hit);
        // Without smoothing a class of -inf must not turn the loss into 0 * inf.
        for (int64_t k = 0; k < split.size && spec.smoothing > 0; ++k) {
          loss += spec.smoothing / static_cast<double>(split.size) *
                  stats.Loss(call.Load(0, split(line, k)));
        }
        ++counted;
      }
      call.Store(1, line, stats.max);
      call.Store(1, split.lines() + line, stats.log_sum);
      if (spec.reduction == LossReduction::kNone) call.Store(0, line, loss);
      total += loss;
    }
    if (spec.reduction == LossReduction::kSum) call.Store(0, 0, total);
    if (spec.reduction == LossReduction::kMean) {
      call.Store(0, 0, total / static_cast<double>(counted));
    }
  };
}

RefRun MakeCrossEntropyGrad(RefNode& node) {
  const CrossEntropySpec spec(node);
  return [=](const RefCall& call) {
    const AxisSplit& split = spec.split;
    int64_t counted = 0;
    for (int64_t line = 0; line < split.lines(); ++line) counted += spec.Counts(call, line);
    for (int64_t line = 0; line < split.lines(); ++line) {
      const bool counts = spec.Counts(call, line);
      const int64_t target = call.LoadInt(1, line);
      double dloss = call.Load(3, spec.reduction == LossReduction::kNone ? line : 0);
      if (spec.reduction == LossReduction::kMean) dloss /= static_cast<double>(counted);
      for (int64_t k = 0; k < split.size; ++k) {
        const int64_t i = split(line, k);
        const double label = (k == target ? 1 - spec.smoothing : 0) +
                             spec.smoothing / static_cast<double>(split.size);
        const double p =
            std::exp(call.Load(0, i) - call.Load(2, line) - call.Load(2, split.lines() + line));
        call.Store(0, i, counts ? (p - label) * dloss : 0);
      }
    }
  };
}

RefMaker MakeRegressionLoss(double (*each)(double difference)) {
  return [=](RefNode& node) -> RefRun {
    const LossReduction reduction = LossReductionOf(node.attrs);
    const int64_t size = node.in(0).num_elements();
    return [=](const RefCall& call) {
      double total = 0;
      for (int64_t i = 0; i < size; ++i) {
        const double loss = each(call.Load(0, i) - call.Load(1, i));
        if (reduction == LossReduction::kNone) call.Store(0, i, loss);
        total += loss;
      }
      if (reduction == LossReduction::kSum) call.Store(0, 0, total);
      if (reduction == LossReduction::kMean) call.Store(0, 0, total / static_cast<double>(size));
    };
  };
}

}  // namespace

void Register_reference_losses(KernelRegistry& r) {
  AddReference(r, "cross_entropy", ir::kFloats, MakeCrossEntropy);
  AddReference(r, "cross_entropy_grad", ir::kFloats, MakeCrossEntropyGrad);
  AddReference(r, "mse_loss", ir::kFloats, MakeRegressionLoss([](double d) { return d * d; }));
  AddReference(r, "l1_loss", ir::kFloats, MakeRegressionLoss([](double d) { return std::abs(d); }));
}

}  // namespace halftone::kernels
