// optim::RMSprop against its formula in double, step by step: PyTorch's, written out here.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

constexpr int kSize = 5, kSteps = 12;
constexpr double kRootStart = 0.5;

// One parameter, whose gradient is the input: the loss is sum(w * c).
struct RootWeighted {
  explicit RootWeighted(const optim::RMSpropOptions& options)
      : w(Shape{kSize}, {ir::Initializer::Kind::kConstant, kRootStart, 0}) {
    graph.fn = [this](const Values& in) -> Values {
      const Value loss = sum(w * in[0]);
      loss.backward();
      return {loss};
    };
    graph.add_parameter("w", w);
    graph.add_optimizer(optim::RMSprop({w}, options));
  }
  void Step(const std::vector<double>& gradient) {
    Call(graph, {Tensor::Of(DType::kF32, {kSize}, gradient)});
  }

  Parameter w;
  FnGraph graph;
};

double RootGradient(int step, int i) { return std::sin(3.0 * step + i) + 0.25 * i; }

struct Element {
  double w = kRootStart, square = 0, mean = 0, buffer = 0;

  void Step(const optim::RMSpropOptions& o, double g) {
    g += o.weight_decay * w;
    square = o.alpha * square + (1 - o.alpha) * g * g;
    double root = square;
    if (o.centered) {
      mean = o.alpha * mean + (1 - o.alpha) * g;
      root -= mean * mean;
    }
    double direction = g / (std::sqrt(root) + o.eps);
    if (o.momentum > 0) direction = buffer = o.momentum * buffer + direction;
    w -= o.lr * direction;
  }
};

void ExpectFollows(const optim::RMSpropOptions& options) {
  RootWeighted weighted(options);
  std::vector<Element> want(kSize);
  for (int step = 0; step < kSteps; ++step) {
    std::vector<double> gradient;
    for (int i = 0; i < kSize; ++i) {
      gradient.push_back(static_cast<float>(RootGradient(step, i)));
      want[i].Step(options, gradient[i]);
    }
    weighted.Step(gradient);
  }
  const absl::StatusOr<StateDict> state = weighted.graph.state_dict();
  ASSERT_TRUE(state.ok()) << state.status();
  const auto expect = [&](const std::string& name, double Element::*member, bool there) {
    ASSERT_EQ(state->count(name), there ? 1u : 0u) << name;
    if (!there) return;
    for (int i = 0; i < kSize; ++i) {
      EXPECT_NEAR(state->at(name).at(i), want[i].*member, 2e-5) << name << " " << i;
    }
  };
  expect("w", &Element::w, true);
  expect("optimizer0.w.square_avg", &Element::square, true);
  expect("optimizer0.w.grad_avg", &Element::mean, options.centered);
  expect("optimizer0.w.momentum_buffer", &Element::buffer, options.momentum > 0);
}

TEST(RMSprop, DefaultsArePyTorchs) {
  const optim::RMSpropOptions o;
  EXPECT_EQ(o.lr, 1e-2);
  EXPECT_EQ(o.alpha, 0.99);
  EXPECT_EQ(o.eps, 1e-8);
  EXPECT_EQ(o.weight_decay, 0);
  EXPECT_EQ(o.momentum, 0);
  EXPECT_FALSE(o.centered);
}

TEST(RMSprop, Plain) { ExpectFollows({}); }
TEST(RMSprop, Decay) { ExpectFollows({.lr = 0.1, .alpha = 0.5, .eps = 0.1, .weight_decay = 0.25}); }
TEST(RMSprop, Momentum) { ExpectFollows({.momentum = 0.5}); }
TEST(RMSprop, Centered) { ExpectFollows({.alpha = 0.75, .eps = 0.1, .centered = true}); }
TEST(RMSprop, CenteredWithMomentum) {
  ExpectFollows(
      {.alpha = 0.75, .eps = 0.1, .weight_decay = 0.5, .momentum = 0.5, .centered = true});
}

// The mean of equal gradients is the gradient, so what is left of the square is a rounding: 0 or
// just beside it, whose root PyTorch would make NaN.
TEST(RMSprop, CenteredWithEqualGradients) {
  RootWeighted weighted({.lr = 1e-3, .alpha = 0.5, .eps = 1, .centered = true});
  for (int step = 0; step < 60; ++step) weighted.Step({0.1, 0.2, 0.3, 0.7, 1e-3});
  for (int i = 0; i < kSize; ++i) EXPECT_TRUE(std::isfinite(weighted.w.value().at(i))) << i;
}

TEST(RMSprop, ErrorsNameOptionAndRange) {
  const optim::RMSprop optimizer({Parameter(Shape{1}, {}).storage()}, {.alpha = 1});
  EXPECT_EQ(Message(optimizer.Validate()), "RMSprop: alpha = 1; expected 0 <= alpha < 1");
}

}  // namespace
}  // namespace halftone::nn
