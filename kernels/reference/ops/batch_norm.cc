// batch_norm, batch_norm_inference, batch_norm_grad.
#include <cmath>

#include "halftone/kernels/reference/support/nn.h"

namespace halftone::kernels {
namespace {

// Calls visit(element) for every element of channel `c`, axis 1.
template <typename Visit>
void ForEachInChannel(const AxisSplit& split, int64_t c, const Visit& visit) {
  for (int64_t line = 0; line < split.lines(); ++line) visit(split(line, c));
}

// Of channel `c` of input 0. The new running statistics go to outputs `port` and the next, from inputs
// `running` and the next.
struct ChannelMoments {
  double mean = 0, invstd = 0;
};
class BatchStatistics {
 public:
  BatchStatistics(const RefNode& node, const AxisSplit& split, int running, int port)
      : split_(split),
        running_(running),
        port_(port),
        eps_(node.attrs.GetFloat("eps")),
        momentum_(node.attrs.GetFloat("momentum")) {}

  ChannelMoments Run(const RefCall& call, int64_t c) const {
    const auto n = static_cast<double>(split_.lines());
    double mean = 0, var = 0;
    ForEachInChannel(split_, c, [&](int64_t i) { mean += call.Load(0, i); });
    mean /= n;
    ForEachInChannel(split_, c, [&](int64_t i) {
      const double d = call.Load(0, i) - mean;
      var += d * d;
    });
    var /= n;
    const double m = momentum_;
    call.Store(port_, c, (1 - m) * call.Load(running_, c) + m * mean);
    call.Store(port_ + 1, c, (1 - m) * call.Load(running_ + 1, c) + m * var * n / (n - 1));
    return {mean, 1 / std::sqrt(var + eps_)};
  }

 private:
  AxisSplit split_;
  int running_, port_;
  double eps_, momentum_;
};

RefRun MakeBatchNorm(RefNode& node) {
  const AxisSplit split(node.in(0), 1);
  const BatchStatistics statistics(node, split, 3, 3);
  return [=](const RefCall& call) {
    for (int64_t c = 0; c < split.size; ++c) {
      const ChannelMoments of = statistics.Run(call, c);
      const double gamma = call.Load(1, c), beta = call.Load(2, c);
      ForEachInChannel(split, c, [&](int64_t i) {
        call.Store(0, i, (call.Load(0, i) - of.mean) * of.invstd * gamma + beta);
      });
      call.Store(1, c, of.mean);
      call.Store(2, c, of.invstd);
    }
  };
}

RefRun MakeBatchNormStats(RefNode& node) {
  const AxisSplit split(node.in(0), 1);
  const BatchStatistics statistics(node, split, 2, 2);
  const bool wide = node.outputs[0].dtype == DType::kF64;
  return [=](const RefCall& call) {
    for (int64_t c = 0; c < split.size; ++c) {
      const ChannelMoments of = statistics.Run(call, c);
      const double saved = wide ? of.mean : static_cast<double>(static_cast<float>(of.mean));
      call.Store(0, c, saved);
      call.Store(1, c, of.invstd);
      call.Store(4, c, of.mean - saved);
      call.Store(5, c, of.invstd * call.Load(1, c));
    }
  };
}

RefRun MakeBatchNormApply(RefNode& node) {
  const int64_t size = node.out(0).num_elements();
  const IndexMap number = IndexMap::Broadcast(node.in(1), node.out(0));
  return [=](const RefCall& call) {
    for (int64_t i = 0; i < size; ++i) {
      const int64_t c = number(i);
      call.Store(0, i,
                 (call.Load(0, i) - call.Load(1, c) - call.Load(2, c)) * call.Load(3, c) +
                     call.Load(4, c));
    }
  };
}

RefRun MakeBatchNormInference(RefNode& node) {
  const AxisSplit split(node.in(0), 1);
  const double eps = node.attrs.GetFloat("eps");
  return [=](const RefCall& call) {
    for (int64_t c = 0; c < split.size; ++c) {
      const double gamma = call.Load(1, c), beta = call.Load(2, c), mean = call.Load(3, c);
      const double invstd = 1 / std::sqrt(call.Load(4, c) + eps);
      ForEachInChannel(split, c, [&](int64_t i) {
        call.Store(0, i, (call.Load(0, i) - mean) * invstd * gamma + beta);
      });
    }
  };
}

RefRun MakeBatchNormGrad(RefNode& node) {
  const AxisSplit split(node.in(0), 1);
  const double n = static_cast<double>(split.lines());
  return [=](const RefCall& call) {
    for (int64_t c = 0; c < split.size; ++c) {
      const double gamma = call.Load(2, c), mean = call.Load(3, c), invstd = call.Load(4, c);
      double dgamma = 0, dbeta = 0;
      ForEachInChannel(split, c, [&](int64_t i) {
        dgamma += call.Load(1, i) * (call.Load(0, i) - mean) * invstd;
        dbeta += call.Load(1, i);
      });
      ForEachInChannel(split, c, [&](int64_t i) {
        const double xhat = (call.Load(0, i) - mean) * invstd;
        call.Store(0, i, gamma * invstd * (call.Load(1, i) - dbeta / n - xhat * dgamma / n));
      });
      call.Store(1, c, dgamma);
      call.Store(2, c, dbeta);
    }
  };
}

}  // namespace

void Register_reference_batch_norm(KernelRegistry& r) {
  AddReference(r, "batch_norm", ir::kFloats, MakeBatchNorm);
  AddReference(r, "batch_norm_stats", ir::kFloats, MakeBatchNormStats);
  AddReference(r, "batch_norm_apply", ir::kFloats, MakeBatchNormApply);
  AddReference(r, "batch_norm_inference", ir::kFloats, MakeBatchNormInference);
  AddReference(r, "batch_norm_grad", ir::kFloats, MakeBatchNormGrad);
}

}  // namespace halftone::kernels
