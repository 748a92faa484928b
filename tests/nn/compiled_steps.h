// Training steps of a few kinds, in every precision, compiled on a device: what passes make of them
// for a target of that name must be the same.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/runtime/compile.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/temp_dir.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::testing {

class Perceptron : public nn::FnGraph {
 public:
  Perceptron() : fc1_(6, 8), fc2_(8, 3) {
    add_module("fc1", fc1_);
    add_module("fc2", fc2_);
    add_optimizer(optim::Adam(parameters(), {.clip_norm = 1}));
    fn = [this](const nn::Values& in) -> nn::Values {
      const nn::Value loss = nn::cross_entropy(fc2_(nn::gelu(fc1_(in[0]))), in[1]);
      loss.backward();
      return {loss};
    };
  }
  static std::vector<Tensor> Batch() {
    return {RandomTensor(DType::kF32, {4, 6}, 1), nn::I64({4}, {0, 1, 2, 1})};
  }

 private:
  nn::Linear fc1_, fc2_;
};

class Convolutions : public nn::FnGraph {
 public:
  Convolutions() : conv_(2, 4, 3, {.padding = 1}), norm_(4), fc_(36, 3) {
    add_module("conv", conv_);
    add_module("norm", norm_);
    add_module("fc", fc_);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.1, .momentum = 0.9}));
    fn = [this](const nn::Values& in) -> nn::Values {
      const nn::Value h = nn::relu(norm_(conv_(in[0])));
      const nn::Value loss = nn::cross_entropy(fc_(nn::flatten(nn::max_pool2d(h, 2))), in[1]);
      loss.backward();
      return {loss};
    };
  }
  static std::vector<Tensor> Batch() {
    return {RandomTensor(DType::kF32, {2, 2, 6, 6}, 1), nn::I64({2}, {0, 2})};
  }

 private:
  nn::Conv2d conv_;
  nn::BatchNorm2d norm_;
  nn::Linear fc_;
};

// One head of attention and the layers around it.
class Attention : public nn::FnGraph {
 public:
  Attention() : norm_({8}), q_(8, 8), k_(8, 8), v_(8, 8), up_(8, 16), down_(16, 8) {
    add_module("norm", norm_);
    add_module("q", q_);
    add_module("k", k_);
    add_module("v", v_);
    add_module("up", up_);
    add_module("down", down_);
    add_optimizer(optim::AdamW(parameters()));
    fn = [this](const nn::Values& in) -> nn::Values {
      const nn::Value x = norm_(in[0]);
      const nn::Value scores = nn::matmul(q_(x), nn::transpose(k_(x), 1, 2)) * 0.35;
      const nn::Value h = in[0] + nn::matmul(nn::softmax(scores, -1), v_(x));
      const nn::Value loss = nn::mse_loss(h + down_(nn::gelu(up_(h))), in[1]);
      loss.backward();
      return {loss};
    };
  }
  static std::vector<Tensor> Batch() {
    return {RandomTensor(DType::kF32, {2, 5, 8}, 1), RandomTensor(DType::kF32, {2, 5, 8}, 2)};
  }

 private:
  nn::LayerNorm norm_;
  nn::Linear q_, k_, v_, up_, down_;
};

// Compiles each step for `device` and calls check(file of the traced graph, the compiled one as
// lossless text, name of the device's target).
using CheckStep = std::function<void(const std::string&, const std::string&, const std::string&)>;

template <typename Model>
void CompileStep(const Device& device, const std::string& precision, const CheckStep& check) {
  SCOPED_TRACE(precision);
  const TempDir dir;
  Model model;
  model.config.dump_dir = dir.path();
  if (precision == "f16") model.config.enable_amp(true, {.dtype = DType::kF16});
  if (precision == "bf16") model.config.enable_amp(true, {.dtype = DType::kBF16});
  if (precision == "auto") model.config.enable_amp(true);
  model.to(device);
  const absl::Status status = model.compile(Model::Batch());
  ASSERT_TRUE(status.ok()) << status;
  const auto target = runtime::TargetOf(device);
  ASSERT_TRUE(target.ok()) << target.status();
  std::string folder;
  for (const auto& entry : std::filesystem::directory_iterator(dir.path()))
    folder = entry.path().string();
  check(folder + "/00_input.txt", ir::Print(*model.compiled_graph(), ir::TextOptions::Lossless()),
        (*target)->name());
}

inline void CompileSteps(const Device& device, const CheckStep& check) {
  for (const char* precision : {"f32", "f16", "bf16", "auto"}) {
    CompileStep<Perceptron>(device, precision, check);
    CompileStep<Convolutions>(device, precision, check);
    CompileStep<Attention>(device, precision, check);
  }
}

// What passes alone make of the file for the fixed target of that name.
inline std::string LoweredForTarget(const std::string& file, const std::string& name) {
  const auto target = kernels::FindFixedTarget(name);
  auto graph = ir::ReadGraphFile(file);
  EXPECT_TRUE(target.ok() && graph.ok()) << target.status() << graph.status();
  if (!target.ok() || !graph.ok()) return "";
  const absl::Status lowered = runtime::Lower(**graph, **target);
  EXPECT_TRUE(lowered.ok()) << lowered;
  return ir::Print(**graph, ir::TextOptions::Lossless());
}

}  // namespace halftone::testing
