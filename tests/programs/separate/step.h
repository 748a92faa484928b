// One training step with a right value, for programs and plug-ins of process_test.cc.
#pragma once

#include <vector>

#include "halftone/halftone.h"

namespace halftone::testing {

// y = x * w with w = (1, 2); each step takes 1 from w.
class TwoByTwo : public nn::Graph {
 public:
  TwoByTwo() : w_(Shape{2}, {ir::Initializer::Kind::kConstant, 1, 0}) {
    add_parameter("w", w_);
    add_optimizer(optim::SGD({w_.storage()}, {.lr = 1}));
  }
  nn::Values build(const nn::Values& in) override {
    const nn::Value y = nn::sum(in[0] * w_);
    y.backward();
    return {y, nn::matmul(nn::reshape(in[0], {1, 2}), nn::reshape(in[0], {2, 1}))};
  }

  // One step of a new graph: x = (2, 3) gives 2 + 3 = 5 and 4 + 9 = 13; the second has w = (-1,
  // -2): -8.
  static bool IsRight() {
    TwoByTwo graph;
    return graph.Gives(5) && graph.Gives(-8);
  }
  bool Gives(double y) {
    const auto out = (*this)({Tensor::Of(DType::kF32, {2}, {2, 3})});
    return out.ok() && (*out)[0].item() == y && (*out)[1].item() == 13;
  }

 private:
  nn::Parameter w_;
};

}  // namespace halftone::testing
