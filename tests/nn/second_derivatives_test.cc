// Gradients of gradients, through all that keeps numbers of its forward pass for the backward pass:
// in f64, against central differences of the first gradients.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using LossOf = std::function<Value(const Value& x)>;

// `count` numbers in (-1.2, 1.2), no two of them closer than 1e-3 up to 600.
std::vector<double> Spread(int64_t count, int64_t step) {
  std::vector<double> numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.push_back(static_cast<double>(i * step % 601) / 250.0 - 1.2);
  }
  return numbers;
}

// With g the gradient of the loss in x and r fixed numbers: that of sum(g r) in x.
void ExpectSecondDerivative(const Shape& shape, const LossOf& loss_of,
                            const std::vector<Module*>& modules = {}) {
  FnGraph graph([&](const Values& in) -> Values {
    const Value g = gradients(loss_of(in[0]), {in[0]})[0];
    const Value product = sum(g * in[1]);
    return {product, gradients(product, {in[0]})[0]};
  });
  for (size_t i = 0; i < modules.size(); ++i) {
    graph.add_module("m" + std::to_string(i), *modules[i]);
  }
  Tensor x = Tensor::Of(DType::kF64, shape, Spread(shape.num_elements(), 137));
  const Tensor r = Tensor::Of(DType::kF64, shape, Spread(shape.num_elements(), 241));
  const std::vector<Tensor> out = Call(graph, {x, r});
  ASSERT_EQ(out.size(), 2u);
  for (int64_t i = 0; i < x.num_elements(); ++i) {
    const double at = x.at(i), step = 1e-5;
    const auto product = [&](double moved) {
      x.set(i, moved);
      const std::vector<double> values = Call1(graph, {x, r});
      return values.empty() ? NAN : values[0];
    };
    const double slope = (product(at + step) - product(at - step)) / (2 * step);
    x.set(i, at);
    EXPECT_NEAR(out[1].at(i), slope, 1e-6 * std::max(1.0, std::abs(slope))) << "element " << i;
  }
}

// A loss in which every element of y counts in another way, and curved.
Value Curved(const Value& y) {
  const int64_t count = y.shape().num_elements();
  const Value flat = reshape(y, {count});
  const Value weights = constant(Tensor::Of(DType::kF64, {count}, Spread(count, 59)));
  return sum(flat * flat * weights + flat * flat * flat);
}

TEST(SecondDerivatives, OfCrossEntropy) {
  for (const char* reduction : {"mean", "sum", "none"}) {
    for (const double smoothing : {0.0, 0.2}) {
      SCOPED_TRACE(reduction);
      ExpectSecondDerivative({4, 3}, [&](const Value& x) {
        const Value loss = cross_entropy(
            x, constant(I64({4}, {2, 0, 1, 0})),
            {.label_smoothing = smoothing, .ignore_index = 1, .reduction = reduction});
        return std::string(reduction) == "none" ? Curved(loss) : loss * loss;
      });
    }
  }
}

// Nothing is left to divide by: the loss is NaN, as PyTorch's, its gradients are 0.
TEST(SecondDerivatives, OfCrossEntropyWithoutATargetThatCounts) {
  FnGraph graph([](const Values& in) -> Values {
    const Value loss = cross_entropy(in[0], constant(I64({2}, {1, 1})), {.ignore_index = 1});
    const Value g = gradients(loss, {in[0]})[0];
    return {g, gradients(sum(g * 3.0), {in[0]})[0]};
  });
  const std::vector<Tensor> out = Call(graph, {F32({2, 2}, {1, 2, 3, 5})});
  ASSERT_EQ(out.size(), 2u);
  EXPECT_EQ(out[0].ToVector(), std::vector<double>(4, 0.0));
  EXPECT_EQ(out[1].ToVector(), std::vector<double>(4, 0.0));
}

// The classes are far from 0: their differences are what counts. Hand-checkable: with two classes
// p = 1/2 each, and the Hessian of one target is p (1 - p) = 1/4 on the diagonal, -1/4 beside it.
TEST(SecondDerivatives, OfCrossEntropyKeepTheirDigits) {
  FnGraph graph([](const Values& in) -> Values {
    const Value g = gradients(cross_entropy(in[0], constant(I64({1}, {0}))), {in[0]})[0];
    return {gradients(sum(g * constant(F32({1, 2}, {1, 0}))), {in[0]})[0]};
  });
  const std::vector<double> row = Call1(graph, {F32({1, 2}, {1e6, 1e6})});
  ASSERT_EQ(row.size(), 2u);
  EXPECT_NEAR(row[0], 0.25, 1e-6);
  EXPECT_NEAR(row[1], -0.25, 1e-6);
}

TEST(SecondDerivatives, OfPooling) {
  ExpectSecondDerivative({1, 2, 5, 6}, [](const Value& x) {
    return Curved(max_pool2d(x, 3, {.stride = 2, .padding = 1}));
  });
  ExpectSecondDerivative({2, 1, 6, 4}, [](const Value& x) {
    return Curved(max_pool2d(x * x, {2, 2}));
  });
  ExpectSecondDerivative({1, 2, 4, 4}, [](const Value& x) { return Curved(avg_pool2d(x, 2)); });
}

TEST(SecondDerivatives, OfNorms) {
  LayerNorm layer({4}, {.affine = false});
  ExpectSecondDerivative({3, 4}, [&](const Value& x) { return Curved(layer(x)); }, {&layer});
  BatchNorm2d batch(2, {.affine = false});
  ExpectSecondDerivative({2, 2, 2, 3}, [&](const Value& x) { return Curved(batch(x)); }, {&batch});
  batch.eval();
  ExpectSecondDerivative({2, 2, 2, 3}, [&](const Value& x) { return Curved(batch(x)); }, {&batch});
  GroupNorm group(2, 4, {.affine = false});
  ExpectSecondDerivative({2, 4, 3}, [&](const Value& x) { return Curved(group(x)); }, {&group});
}

TEST(SecondDerivatives, OfSoftmax) {
  ExpectSecondDerivative({3, 4}, [](const Value& x) { return Curved(softmax(x, 1)); });
  ExpectSecondDerivative({3, 4}, [](const Value& x) { return Curved(log_softmax(x, 0)); });
}

TEST(SecondDerivatives, OfAttention) {
  for (const bool causal : {false, true}) {
    ExpectSecondDerivative({3, 2, 3, 4}, [&](const Value& x) {
      const auto part = [&x](int64_t i) { return squeeze(slice(x, 0, i, i + 1), 0); };
      return Curved(scaled_dot_product_attention(part(0), part(1), part(2), {.is_causal = causal}));
    });
  }
  // By the additive mask.
  ExpectSecondDerivative({3, 4}, [](const Value& mask) {
    const auto fixed = [](int64_t step) {
      return constant(Tensor::Of(DType::kF64, {1, 3, 4}, Spread(12, step)));
    };
    const Value keys = constant(Tensor::Of(DType::kF64, {1, 4, 4}, Spread(16, 71)));
    return Curved(scaled_dot_product_attention(fixed(29), keys, keys, mask));
  });
}

TEST(SecondDerivatives, OfAConvolutionAndALinearLayer) {
  ExpectSecondDerivative({1, 2, 4, 3}, [](const Value& x) {
    const Value w = constant(Tensor::Of(DType::kF64, {2, 2, 3, 3}, Spread(36, 83)));
    const Value m = constant(Tensor::Of(DType::kF64, {5, 24}, Spread(120, 17)));
    const Value h = sigmoid(conv2d(x, w, std::nullopt, {.padding = 1}));
    return Curved(matmul(m, reshape(h, {24, 1})));
  });
}

// A penalty on the norm of the input's gradient, in f16 with a scaler beside f32: the same update to
// f16's digits, whatever the scale is.
TEST(SecondDerivatives, UnderMixedPrecision) {
  class Penalty : public FnGraph {
   public:
    Penalty() : conv(1, 4, 3, {.padding = 1}), norm(4), fc(4 * 3 * 3, 3) {
      fn = [this](const Values& in) -> Values {
        const Value h = max_pool2d(gelu(norm(conv(in[0]))), 2);
        const Value loss = cross_entropy(fc(flatten(h, 1)), in[1]);
        const Value g = gradients(loss, {in[0]})[0];
        const Value penalty = sqrt(sum(g * g));
        penalty.backward();
        return {penalty};
      };
      add_module("conv", conv);
      add_module("norm", norm);
      add_module("fc", fc);
      add_optimizer(optim::SGD(parameters(), {.lr = 1}));
    }
    // What one step takes from the weights of the convolution, and the penalty.
    std::vector<double> Update() {
      const Tensor before = conv.weight.value().Clone();
      const Tensor x = Tensor::Of(DType::kF32, {4, 1, 6, 6}, Spread(4 * 36, 137));
      std::vector<double> numbers = Call1(*this, {x, I64({4}, {0, 2, 1, 0})});
      const Tensor after = conv.weight.value();
      for (int64_t i = 0; i < before.num_elements(); ++i) {
        numbers.push_back(before.at(i) - after.at(i));
      }
      return numbers;
    }
    Conv2d conv;
    BatchNorm2d norm;
    Linear fc;
  };
  Penalty exact;
  ASSERT_TRUE(exact.initialize().ok());
  const std::vector<double> wanted = exact.Update();
  double largest = 0;
  for (size_t i = 1; i < wanted.size(); ++i) largest = std::max(largest, std::abs(wanted[i]));
  ASSERT_GT(largest, 0.01);
  for (const double scale : {1.0, 1024.0, 65536.0}) {
    Penalty low;
    ASSERT_TRUE(low.initialize().ok());
    low.config.enable_amp(true, {.dtype = DType::kF16});
    low.set_grad_scaler(amp::GradScaler({.init_scale = scale}));
    const std::vector<double> got = low.Update();
    ASSERT_EQ(got.size(), wanted.size());
    EXPECT_FALSE(low.last_step_skipped());
    EXPECT_NEAR(got[0], wanted[0], 0.01 * wanted[0]);
    for (size_t i = 1; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], wanted[i], 0.02 * largest) << "scale " << scale << ", weight " << i;
    }
  }
}

}  // namespace
}  // namespace halftone::nn
