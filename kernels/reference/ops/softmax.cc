// softmax, log_softmax and their gradients, line by line along the axis.
#include <cmath>
#include <limits>

#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

AxisSplit SoftmaxSplit(const RefNode& node) {
  return AxisSplit(node.in(0), ops::CheckedAxis(node.attrs.GetInt("axis"), node.in(0).rank()));
}

RefMaker MakeSoftmax(bool logarithm) {
  return [=](RefNode& node) -> RefRun {
    const AxisSplit split = SoftmaxSplit(node);
    return [=](const RefCall& call) {
      for (int64_t line = 0; line < split.lines(); ++line) {
        double max = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int64_t k = 0; k < split.size; ++k) {
          max = std::fmax(max, call.Load(0, split(line, k)));
        }
        for (int64_t k = 0; k < split.size; ++k) {
          sum += std::exp(call.Load(0, split(line, k)) - max);
        }
        for (int64_t k = 0; k < split.size; ++k) {
          const int64_t i = split(line, k);
          const double shifted = call.Load(0, i) - max;
          call.Store(0, i, logarithm ? shifted - std::log(sum) : std::exp(shifted) / sum);
        }
      }
    };
  };
}

RefMaker MakeSoftmaxGrad(bool logarithm) {
  return [=](RefNode& node) -> RefRun {
    const AxisSplit split = SoftmaxSplit(node);
    return [=](const RefCall& call) {
      for (int64_t line = 0; line < split.lines(); ++line) {
        double sum = 0;
        for (int64_t k = 0; k < split.size; ++k) {
          const int64_t i = split(line, k);
          sum += logarithm ? call.Load(1, i) : call.Load(0, i) * call.Load(1, i);
        }
        for (int64_t k = 0; k < split.size; ++k) {
          const int64_t i = split(line, k);
          const double y = call.Load(0, i), dy = call.Load(1, i);
          call.Store(0, i, logarithm ? dy - std::exp(y) * sum : y * (dy - sum));
        }
      }
    };
  };
}

}  // namespace

void Register_reference_softmax(KernelRegistry& r) {
  AddReference(r, "softmax", ir::kFloats, MakeSoftmax(false));
  AddReference(r, "log_softmax", ir::kFloats, MakeSoftmax(true));
  AddReference(r, "softmax_grad", ir::kFloats, MakeSoftmaxGrad(false));
  AddReference(r, "log_softmax_grad", ir::kFloats, MakeSoftmaxGrad(true));
}

}  // namespace halftone::kernels
