// The reference workloads as graphs, layer for layer those of benchmarks/peers/torch_workloads.py.
// Also used by the parity test.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "halftone/halftone.h"

namespace halftone::benchmarks {

// A network of one module chain with mean cross-entropy. In: x, labels i64; out: loss.
class Classifier : public nn::Graph {
 public:
  nn::Values build(const nn::Values& in) override {
    nn::Value loss = nn::cross_entropy(net(in[0]), in[1]);
    loss.backward();
    return {loss};
  }
  nn::Sequential net;

 protected:
  using nn::Graph::Graph;
};

// x f32 [128,256].
class Mlp : public Classifier {
 public:
  Mlp() : Classifier("mlp") {
    net.emplace<nn::Linear>(256, 128);
    net.emplace<nn::ReLU>();
    net.emplace<nn::Linear>(128, 10);
    add_module("net", net);
    add_optimizer(optim::SGD(parameters(), {.lr = 1e-3}));
  }
};

// x f32 [128,1,28,28].
class FashionCnn : public Classifier {
 public:
  FashionCnn() : Classifier("fashion_cnn") {
    net.emplace<nn::Conv2d>(1, 32, 3, nn::Conv2dLayerOptions{.padding = 1});
    net.emplace<nn::ReLU>();
    net.emplace<nn::Conv2d>(32, 64, 3, nn::Conv2dLayerOptions{.padding = 1});
    net.emplace<nn::ReLU>();
    net.emplace<nn::MaxPool2d>(2);
    net.emplace<nn::Flatten>();
    net.emplace<nn::Linear>(64 * 14 * 14, 128);
    net.emplace<nn::ReLU>();
    net.emplace<nn::Linear>(128, 10);
    add_module("net", net);
    add_optimizer(optim::Adam(parameters(), {.lr = 1e-4}));
  }
};

struct Workload {
  std::string name;
  Shape x_shape;
  std::unique_ptr<Classifier> (*make)();
};

inline const std::vector<Workload>& Workloads() {
  static const auto* workloads = new std::vector<Workload>{
      {"mlp", {128, 256}, [] { return std::unique_ptr<Classifier>(new Mlp); }},
      {"fashion_cnn", {128, 1, 28, 28}, [] { return std::unique_ptr<Classifier>(new FashionCnn); }},
  };
  return *workloads;
}

}  // namespace halftone::benchmarks
