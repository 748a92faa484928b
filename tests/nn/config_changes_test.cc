// A configuration that changes after the first call holds from the next call on, for signatures
// that were compiled before too.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

// Dropout over a product; in training its loss is the mean.
class Net : public FnGraph {
 public:
  Net()
      : FnGraph([this](const Values& in) -> Values {
          const Value h = fc(in[0]);
          const Value y = dropout(relu(h), 0.5);
          mean(y).backward();
          return {y, h};
        }),
        fc(64, 64) {
    add_module("fc", fc);
    optimizer = add_optimizer(optim::SGD(parameters(), {.lr = 0}));
    to(Device::Reference());
  }
  std::vector<double> Step() { return Call1(*this, {Tensor::Full(DType::kF32, {64, 64}, 1)}); }
  DType LinearType() const {
    for (const auto& node : compiled_graph()->nodes()) {
      if (node->op().name == "linear") return node->output_type().dtype;
    }
    return DType::kBool;
  }
  Linear fc;
  OptimizerHandle optimizer;
};

TEST(ConfigChanges, F41MixedPrecision) {
  Net net;
  net.Step();
  EXPECT_EQ(net.LinearType(), DType::kF32);
  net.config.enable_amp(true, {.dtype = DType::kBF16});
  net.Step();
  EXPECT_EQ(net.LinearType(), DType::kBF16);
  net.config.enable_amp(true, {.dtype = DType::kF16});
  net.Step();
  EXPECT_EQ(net.LinearType(), DType::kF16);
  EXPECT_EQ(net.grad_scaler().scale(), 65536);
  net.config.enable_amp(true, {.dtype = DType::kF16, .deny = {"fc/*"}});
  net.Step();
  EXPECT_EQ(net.LinearType(), DType::kF32);
  EXPECT_EQ(net.builds, 4);
  // An earlier configuration finds what was compiled for it.
  net.config.enable_amp(true, {.dtype = DType::kBF16});
  net.Step();
  EXPECT_EQ(net.LinearType(), DType::kBF16);
  net.config.enable_amp(false);
  net.Step();
  EXPECT_EQ(net.LinearType(), DType::kF32);
  EXPECT_EQ(net.builds, 4);
}

TEST(ConfigChanges, F41EachFieldOfThePolicy) {
  Net net;
  net.Step();
  const amp::Policy base{.dtype = DType::kBF16};
  std::vector<amp::Policy> policies(9, base);
  policies[1].allow = {"exp"};
  policies[2].infer = {"exp"};
  policies[3].clear = {"exp"};
  policies[4].deny = {"exp"};
  policies[5].low_outputs = true;
  policies[6].trim = false;
  policies[7].dtype = DType::kF16;
  policies[8].level = amp::Level::kConservative;
  net.config.cache_size = 20;
  for (size_t i = 0; i < policies.size(); ++i) {
    net.config.enable_amp(true, policies[i]);
    net.Step();
    EXPECT_EQ(net.builds, static_cast<int>(i) + 2) << i;
  }
}

TEST(ConfigChanges, F41Seed) {
  Net changed, from_the_start;
  from_the_start.config.seed = 7;
  changed.Step();
  from_the_start.Step();
  ASSERT_TRUE(from_the_start.load_state_dict(*changed.state_dict()).ok());
  changed.config.seed = 7;
  EXPECT_EQ(changed.Step(), from_the_start.Step()) << "masks follow the new seed";
  Net other;
  other.Step();
  ASSERT_TRUE(other.load_state_dict(*changed.state_dict()).ok());
  EXPECT_NE(other.Step(), changed.Step());
}

TEST(ConfigChanges, F41OutputTypesAndGradientNorm) {
  Net net;
  net.config.enable_amp(true, {.dtype = DType::kBF16});
  const Tensor x = Tensor::Full(DType::kF32, {64, 64}, 1);
  EXPECT_EQ(Call(net, {x}).at(1).dtype(), DType::kF32);
  net.config.amp_low_outputs = true;
  EXPECT_EQ(Call(net, {x}).at(1).dtype(), DType::kBF16);
  EXPECT_TRUE(std::isnan(net.optimizer.grad_norm()));
  net.config.track_grad_norm = true;
  net.Step();
  EXPECT_GT(net.optimizer.grad_norm(), 0);
}

TEST(ConfigChanges, F41BuffersOfSkippedSteps) {
  BatchNorm2d norm(1);
  Parameter w(Shape{}, {ir::Initializer::Kind::kConstant, 1, 0});
  FnGraph graph([&](const Values& in) -> Values {
    norm(in[0]);
    const Value loss = w * in[1];
    loss.backward();
    return {loss};
  });
  graph.add_module("norm", norm);
  graph.add_parameter("w", w);
  graph.add_optimizer(optim::SGD({w.storage()}));
  graph.set_grad_scaler(amp::GradScaler());
  const std::vector<Tensor> in = {F32({2, 1}, {1, 3}), F32({}, {INFINITY})};
  Call(graph, in);
  EXPECT_EQ(norm.num_batches_tracked.value().item(), 0);
  graph.config.update_buffers_on_skip = true;
  Call(graph, in);
  EXPECT_EQ(norm.num_batches_tracked.value().item(), 1);
}

TEST(ConfigChanges, F41DumpFolder) {
  const std::filesystem::path dir =
      std::filesystem::path(::testing::TempDir()) / Concat("config_changes_", getpid());
  std::filesystem::remove_all(dir);
  Net net;
  net.Step();
  net.config.dump_dir = dir.string();
  net.Step();
  EXPECT_TRUE(std::filesystem::exists(dir / "graph_0" / "variables.ckpt"));
  std::filesystem::remove_all(dir);
}

TEST(ConfigChanges, F41TheShortBatchAtTheEndOfAnEpochIsOfOnePrecision) {
  Net net;
  const Tensor full = Tensor::Full(DType::kF32, {64, 64}, 1);
  const Tensor rest = Tensor::Full(DType::kF32, {8, 64}, 1);
  Call(net, {full});
  net.config.enable_amp(true, {.dtype = DType::kF16, .trim = false});
  Call(net, {full});
  EXPECT_EQ(net.LinearType(), DType::kF16);
  Call(net, {rest});
  EXPECT_EQ(net.LinearType(), DType::kF16);
}

TEST(ConfigChanges, F41FewerExecutables) {
  Net net;
  for (const int64_t rows : {1, 2, 3}) Call(net, {Tensor::Full(DType::kF32, {rows, 64}, 1)});
  net.config.cache_size = 1;
  Call(net, {Tensor::Full(DType::kF32, {3, 64}, 1)});
  EXPECT_EQ(net.builds, 3) << "keeping fewer compiles nothing";
  Call(net, {Tensor::Full(DType::kF32, {2, 64}, 1)});
  EXPECT_EQ(net.builds, 4) << "the others went at once";
}

}  // namespace
}  // namespace halftone::nn
