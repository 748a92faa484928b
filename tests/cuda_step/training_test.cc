// Training steps on CUDA against the same on the CPU.
#include <sstream>

#include "halftone/kernels/kernel.h"
#include "halftone/tests/cuda_step/both_devices.h"

namespace halftone::nn {
namespace {

using halftone::testing::Follows;
using halftone::testing::RandomTensor;
using halftone::testing::SameState;
using halftone::testing::Train;
using halftone::testing::Trajectory;

std::vector<Tensor> Batch(int step, int64_t n = 24) {
  const Tensor x = RandomTensor(DType::kF32, {n, 20}, 100 + static_cast<uint64_t>(step));
  Tensor y = Tensor::Empty(DType::kI64, {n});
  for (int64_t i = 0; i < n; ++i) y.set(i, x.at(i * 20) > 0 ? 3 : 1);
  return {x, y};
}

enum class Rule { kSgd, kMomentum, kAdam, kAdamW, kNAdam, kLamb, kGroups };

struct Setting {
  std::string name = "";
  Rule rule = Rule::kSgd;
  std::optional<DType> low = {};
  double clip_norm = 0;
};

class Mlp : public Graph {
 public:
  explicit Mlp(const Setting& setting) : fc1_(20, 33), norm_({33}), fc2_(33, 5) {
    add_module("fc1", fc1_);
    add_module("norm", norm_);
    add_module("fc2", fc2_);
    const double clip = setting.clip_norm;
    switch (setting.rule) {
      case Rule::kSgd:
        optimizer = add_optimizer(optim::SGD(parameters(), {.lr = 0.1, .clip_norm = clip}));
        break;
      case Rule::kMomentum:
        optimizer = add_optimizer(optim::SGD(
            parameters(), {.lr = 0.1, .momentum = 0.9, .weight_decay = 1e-3, .clip_norm = clip}));
        break;
      case Rule::kAdam:
        optimizer = add_optimizer(optim::Adam(parameters(), {.lr = 1e-2, .clip_norm = clip}));
        break;
      case Rule::kAdamW:
        optimizer = add_optimizer(optim::AdamW(parameters(), {.lr = 1e-2, .clip_norm = clip}));
        break;
      case Rule::kNAdam:
        optimizer = add_optimizer(optim::NAdam(
            parameters(),
            {.lr = 1e-2, .lr_schedule = optim::OneCycleLR(1e-2, 20), .clip_norm = clip}));
        break;
      case Rule::kLamb:
        optimizer = add_optimizer(optim::LAMB(
            parameters(), {.lr = 1e-2, .clip_norm = clip, .ema = optim::Ema{.decay = 0.75}}));
        break;
      case Rule::kGroups: {
        const ParameterSplit split = split_parameters({"*.bias", "norm.*"});
        optimizer = add_optimizer(optim::AdamW(
            {{split.rest, {.betas = {{0.8, 0.99}}, .clip_value = 1e-3}},
             {split.matching, {.lr = 1e-3, .weight_decay = 0, .lr_schedule = optim::StepLR(3)}}},
            {.lr = 1e-2, .clip_norm = clip}));
        break;
      }
    }
    if (setting.low) config.enable_amp(true, {.dtype = setting.low});
    if (setting.low == DType::kF16) {
      scaler = set_grad_scaler(amp::GradScaler({.init_scale = 1024, .growth_interval = 4}));
    }
  }
  Values build(const Values& in) override {
    const Value logits = fc2_(norm_(gelu(fc1_(in[0]))));
    const Value loss = cross_entropy(logits, in[1]);
    loss.backward();
    return {loss, logits};
  }

  OptimizerHandle optimizer;
  ScalerHandle scaler;

 private:
  Linear fc1_;
  LayerNorm norm_;
  Linear fc2_;
};

class CudaTraining : public ::testing::TestWithParam<Setting> {};

TEST_P(CudaTraining, FollowsTheCpu) {
  const Setting& setting = GetParam();
  const auto batch = [](int step) { return Batch(step); };
  Mlp on_cpu(setting), on_cuda(setting);
  const Trajectory want = Train(on_cpu, Device::Cpu(), 10, batch);
  const Trajectory got = Train(on_cuda, Device::Cuda(0), 10, batch);
  // 16-bit roundings fall differently where sums are added in another order.
  const double relative = !setting.low ? 1e-4 : *setting.low == DType::kF16 ? 2e-3 : 2e-2;
  EXPECT_TRUE(Follows(got.losses, want.losses, relative));
  EXPECT_LT(got.losses.back(), got.losses.front());
  if (!setting.low) {
    EXPECT_TRUE(SameState(got.state, want.state, 1e-3));
  }
  EXPECT_EQ(on_cuda.scaler.scale(), on_cpu.scaler.scale());
  EXPECT_EQ(on_cuda.optimizer.applied_steps(), 10);
}

INSTANTIATE_TEST_SUITE_P(
    All, CudaTraining,
    ::testing::Values(Setting{.name = "sgd_f32"},
                      Setting{.name = "momentum_f32", .rule = Rule::kMomentum},
                      Setting{.name = "adam_f32", .rule = Rule::kAdam},
                      Setting{.name = "adamw_f32_clipped", .rule = Rule::kAdamW, .clip_norm = 0.1},
                      Setting{.name = "nadam_f32", .rule = Rule::kNAdam},
                      Setting{.name = "lamb_f32", .rule = Rule::kLamb},
                      Setting{.name = "lamb_f16", .rule = Rule::kLamb, .low = DType::kF16},
                      Setting{.name = "groups_f32", .rule = Rule::kGroups},
                      Setting{
                          .name = "groups_f32_clipped", .rule = Rule::kGroups, .clip_norm = 0.1},
                      Setting{.name = "groups_f16", .rule = Rule::kGroups, .low = DType::kF16},
                      Setting{.name = "sgd_f16", .low = DType::kF16},
                      Setting{.name = "adam_f16", .rule = Rule::kAdam, .low = DType::kF16},
                      Setting{.name = "adam_bf16", .rule = Rule::kAdam, .low = DType::kBF16}),
    [](const auto& info) { return info.param.name; });

// Two sparse tables, one of them used twice, and a layer.
class Tables : public Graph {
 public:
  Tables(bool adam, std::optional<DType> low)
      : words_(300, 12, {.padding_idx = 3, .sparse = true}),
        users_(40, 12, {.sparse = true}),
        head_(12, 5) {
    add_module("words", words_);
    add_module("users", users_);
    add_module("head", head_);
    const optim::ParameterList tables = {words_.weight, users_.weight};
    if (adam) {
      add_optimizer(optim::SparseAdam(tables, {.lr = 0.05, .clip_norm = 1}));
    } else {
      add_optimizer(optim::Adagrad(tables, {.lr = 0.2}));
    }
    add_optimizer(optim::SGD(head_.parameters(), {.lr = 0.1}));
    if (low) config.enable_amp(true, {.dtype = low});
    if (low == DType::kF16) {
      set_grad_scaler(amp::GradScaler({.init_scale = 1024, .growth_interval = 4}));
    }
  }
  Values build(const Values& in) override {
    const Value x = sum(words_(in[0]), {1}) + sum(words_(in[1]), {1}) + users_(in[2]);
    const Value loss = cross_entropy(head_(x), in[3]);
    loss.backward();
    return {loss};
  }
  static std::vector<Tensor> Batch(int step) {
    Tensor words = Tensor::Empty(DType::kI64, {24, 7}), more = Tensor::Empty(DType::kI32, {24, 2});
    Tensor users = Tensor::Empty(DType::kI64, {24}), y = Tensor::Empty(DType::kI64, {24});
    for (int64_t i = 0; i < 24; ++i) {
      for (int64_t j = 0; j < 7; ++j) words.set(i * 7 + j, (i * 31 + j * j * (step % 4 + 1)) % 300);
      for (int64_t j = 0; j < 2; ++j) more.set(i * 2 + j, (i + j) % 9);
      users.set(i, i * 5 % 17);
      y.set(i, i % 5);
    }
    return {words, more, users, y};
  }

 private:
  Embedding words_, users_;
  Linear head_;
};

TEST(CudaStep, SparseTablesFollowTheCpu) {
  for (const std::optional<DType> low : {std::optional<DType>(), std::optional(DType::kF16)}) {
    for (const bool adam : {false, true}) {
      Tables on_cpu(adam, low), on_cuda(adam, low);
      const Trajectory want = Train(on_cpu, Device::Cpu(), 10, Tables::Batch);
      const Trajectory got = Train(on_cuda, Device::Cuda(0), 10, Tables::Batch);
      EXPECT_TRUE(Follows(got.losses, want.losses, low ? 2e-3 : 1e-4));
      EXPECT_LT(got.losses.back(), got.losses.front());
      if (!low) {
        EXPECT_TRUE(SameState(got.state, want.state, 1e-3));
      }
      const std::string update = Concat("cuda:native:", adam ? "adam" : "adagrad", "_update_rows");
      EXPECT_NE(on_cuda.kernel_log().find(update), std::string::npos) << on_cuda.kernel_log();
    }
  }
}

TEST(CudaStep, OptimizerUpdatesAreOneKernelAndWriteTheLowCopies) {
  Mlp graph({.rule = Rule::kAdam, .low = DType::kF16});
  Train(graph, Device::Cuda(0), 3, [](int step) { return Batch(step); });
  EXPECT_NE(graph.kernel_log().find("and 5 more: one cuda:native:adam_update"), std::string::npos)
      << graph.kernel_log();
  // The graph says so: one number for all, and a copy for each of the two weights and
  // biases.
  int grouped = 0, copies = 0;
  for (const auto& node : graph.compiled_graph()->nodes()) {
    if (node->op().name != "adam_update") continue;
    grouped += node->attrs().GetInt("group") == 1 ? 1 : 0;
    copies += node->attrs().GetDType("low") == DType::kF16 ? 1 : 0;
  }
  EXPECT_EQ(grouped, 6);
  EXPECT_EQ(copies, 4);
  graph.set_profile([](const ir::Node& node, const kernels::Kernel&, double) {
    // A cast of a weight in the step would be one that nobody kept.
    EXPECT_FALSE(node.op().name == "cast" && node.input(0).node->op().name == "variable" &&
                 IsLow(node.output_type().dtype))
        << node.Label();
  });
  Call(graph, Batch(3));
}

// Averages are one launch more, and the launch of the updates stays one.
TEST(CudaStep, AveragesAreOneKernelAndStandInForParameters) {
  const auto batch = [](int step) { return Batch(step); };
  const Setting setting{.rule = Rule::kLamb, .low = DType::kF16};
  Mlp on_cpu(setting), on_cuda(setting);
  Train(on_cpu, Device::Cpu(), 5, batch);
  Train(on_cuda, Device::Cuda(0), 5, batch);
  for (const char* op : {"lamb_update", "moving_average_update"}) {
    EXPECT_NE(on_cuda.kernel_log().find(Concat("and 5 more: one cuda:native:", op)),
              std::string::npos)
        << on_cuda.kernel_log();
  }
  int copies = 0;
  for (const auto& node : on_cuda.compiled_graph()->nodes()) {
    const bool writes = node->op().name == "lamb_update" && IsLow(node->attrs().GetDType("low"));
    copies += writes ? 1 : 0;
  }
  EXPECT_EQ(copies, 4) << "updates write the 16-bit weights also where averages read them";
  const auto evaluate = [](Mlp& graph) {
    graph.eval();
    const double loss = Call(graph, Batch(9))[0].item();
    graph.train();
    return loss;
  };
  const double own = evaluate(on_cuda);
  {
    const EmaScope cpu(on_cpu), cuda(on_cuda);
    ASSERT_TRUE(cpu.status().ok() && cuda.status().ok());
    EXPECT_TRUE(Follows({evaluate(on_cuda)}, {evaluate(on_cpu)}, 2e-3));
    EXPECT_NE(evaluate(on_cuda), own);
  }
  EXPECT_EQ(evaluate(on_cuda), own);
}

// Two weights in one group, two biases and the norm's two in the other.
TEST(CudaStep, EachParameterGroupIsOneKernel) {
  Mlp graph({.rule = Rule::kGroups, .low = DType::kF16});
  Train(graph, Device::Cuda(0), 1, [](int step) { return Batch(step); });
  for (const char* members : {"and 1 more", "and 3 more"}) {
    EXPECT_NE(graph.kernel_log().find(Concat(members, ": one cuda:native:adam_update")),
              std::string::npos)
        << graph.kernel_log();
  }
}

#if defined(HALFTONE_CUDA_EMULATED)
// (1 + 2^-12)^2 in the first place; TF32 makes 1 of the operand. A real library need not.
TEST(CudaStep, Tf32IsUsedWhereTheGraphAllowsIt) {
  FnGraph graph([](const Values& in) -> Values { return {matmul(in[0], in[0])}; });
  graph.to(Device::Cuda(0));
  Tensor x = Tensor::Full(DType::kF32, {16, 16}, 0);
  x.set(0, 1 + 0x1p-12);
  EXPECT_EQ(Call1(graph, {x})[0], 1 + 0x1p-11);
  graph.config.allow_tf32 = true;
  EXPECT_EQ(Call1(graph, {x})[0], 1);
}
#endif

TEST(CudaStep, StateMovesBetweenDevices) {
  const auto batch = [](int step) { return Batch(step); };
  const Setting setting{.rule = Rule::kAdam};
  Mlp stays(setting), moves(setting);
  const Trajectory want = Train(stays, Device::Cpu(), 9, batch);
  std::vector<double> losses;
  for (int part = 0; part < 3; ++part) {
    const Device device = part == 1 ? Device::Cuda(0) : Device::Cpu();
    const Trajectory some =
        Train(moves, device, 3, [part](int step) { return Batch(3 * part + step); });
    losses.insert(losses.end(), some.losses.begin(), some.losses.end());
  }
  EXPECT_TRUE(Follows(losses, want.losses, 1e-4));
}

TEST(CudaStep, LoadedStateIsUsedByTheNextStep) {
  const auto batch = [](int step) { return Batch(step); };
  const Setting setting{.rule = Rule::kAdam, .low = DType::kBF16};
  Mlp first(setting), second(setting);
  const Trajectory start = Train(first, Device::Cuda(0), 4, batch);
  // Its low copies are of its own weights; loading makes them stale.
  second.config.seed = 9;
  Train(second, Device::Cuda(0), 2, batch);
  ASSERT_TRUE(second.load_state_dict(start.state).ok());
  const Trajectory a = Train(first, Device::Cuda(0), 3, batch);
  const Trajectory b = Train(second, Device::Cuda(0), 3, batch);
  EXPECT_EQ(a.losses, b.losses);
  EXPECT_TRUE(SameState(b.state, a.state, 0));
}

TEST(CudaStep, OverflowLeavesEverythingBitIdentical) {
  Mlp graph({.rule = Rule::kAdam, .low = DType::kF16});
  Train(graph, Device::Cuda(0), 3, [](int step) { return Batch(step); });
  ASSERT_TRUE(graph.scaler.set_scale(1e30).ok());
  StateDict before = *graph.state_dict();
  Call(graph, Batch(3));
  EXPECT_TRUE(graph.last_step_skipped());
  EXPECT_EQ(graph.scaler.scale(), 0.5 * static_cast<double>(1e30f));
  StateDict after = *graph.state_dict();
  for (const auto& [name, value] : before) {
    const bool counts = name.rfind("scaler0.", 0) == 0 || name == "run_count" ||
                        name == "optimizer0.first_nonfinite";
    if (counts) continue;
    EXPECT_TRUE(BitEqual(after.at(name), value)) << name;
  }
}

TEST(CudaStep, ABadLabelIsTheErrorOfSynchronizeAndChangesNothing) {
  for (const Rule rule : {Rule::kSgd, Rule::kAdam}) {
    Mlp graph({.rule = rule, .low = DType::kF16});
    Train(graph, Device::Cuda(0), 3, [](int step) { return Batch(step); });
    StateDict before = *graph.state_dict();
    std::vector<Tensor> bad = Batch(3);
    bad[1].set(7, 5);
    ASSERT_TRUE(graph(bad).ok());
    const absl::Status status = graph.synchronize();
    EXPECT_EQ(status.code(), absl::StatusCode::kOutOfRange) << status;
    EXPECT_NE(Message(status).find("cross_entropy"), std::string::npos) << status;
    EXPECT_TRUE(graph.last_step_skipped());
    StateDict after = *graph.state_dict();
    for (const auto& [name, value] : before) {
      if (name == "run_count") continue;
      EXPECT_TRUE(BitEqual(after.at(name), value)) << name;
    }
    // The graph goes on.
    Call(graph, Batch(4));
    EXPECT_TRUE(graph.synchronize().ok());
    EXPECT_FALSE(graph.last_step_skipped());
  }
}

TEST(CudaStep, TheNextCallTellsAnErrorThatNobodyAskedFor) {
  Mlp graph({});
  Train(graph, Device::Cuda(0), 2, [](int step) { return Batch(step); });
  std::vector<Tensor> bad = Batch(3);
  bad[1].set(0, -7);
  const std::vector<Tensor> lost = Call(graph, bad);
  lost[0].item();  // waits; undefined
  EXPECT_EQ(graph(Batch(4)).status().code(), absl::StatusCode::kOutOfRange);
  EXPECT_TRUE(graph(Batch(4)).ok());
  EXPECT_TRUE(graph.synchronize().ok());
}

TEST(CudaStep, SignaturesAndModesShareWhatTheyTrain) {
  const auto batch = [](int step) { return Batch(step, step % 2 == 0 ? 24 : 7); };
  const Setting setting{.rule = Rule::kMomentum};
  Mlp on_cpu(setting), on_cuda(setting);
  const Trajectory want = Train(on_cpu, Device::Cpu(), 6, batch);
  const Trajectory got = Train(on_cuda, Device::Cuda(0), 6, batch);
  EXPECT_TRUE(Follows(got.losses, want.losses, 1e-4));
  on_cpu.eval();
  on_cuda.eval();
  EXPECT_TRUE(
      Follows({Call(on_cuda, Batch(9))[0].item()}, {Call(on_cpu, Batch(9))[0].item()}, 1e-4));
}

TEST(CudaStep, DropoutMasksAreTheCpusAndMoveOn) {
  const auto make = [] {
    auto graph =
        std::make_unique<FnGraph>([](const Values& in) -> Values { return {dropout(in[0], 0.5)}; });
    graph->train();
    return graph;
  };
  const auto on_cpu = make(), on_cuda = make();
  on_cuda->to(Device::Cuda(0));
  const Tensor x = Tensor::Full(DType::kF32, {3, 41}, 1);
  std::vector<Tensor> masks;
  for (int step = 0; step < 4; ++step) {  // recorded from the second step on
    const Tensor want = Call(*on_cpu, {x})[0], got = Call(*on_cuda, {x})[0];
    EXPECT_TRUE(BitEqual(got, want)) << "step " << step;
    for (const Tensor& earlier : masks) EXPECT_FALSE(BitEqual(got, earlier));
    masks.push_back(got.Clone());
  }
}

TEST(CudaStep, F04EvaluatingMovesNoMaskOn) {
  const auto train = [](bool evaluates) {
    Linear fc(20, 5);
    FnGraph graph([&fc](const Values& in) -> Values {
      const Value loss = cross_entropy(fc(dropout(in[0], 0.5)), in[1]);
      loss.backward();
      return {loss};
    });
    graph.add_module("fc", fc);
    graph.add_optimizer(optim::Adam(graph.parameters()));
    graph.to(Device::Cuda(0));
    for (int step = 0; step < 5; ++step) {
      Call(graph, Batch(step));
      if (!evaluates || step == 0) continue;
      graph.eval();
      Call(graph, Batch(step));
      Call(graph, Batch(step, 7));
      graph.train();
    }
    return *graph.state_dict();
  };
  EXPECT_TRUE(SameState(train(true), train(false), 0));
}

TEST(CudaStep, TwoGraphsShareAModule) {
  const auto run = [](Device device) {
    Linear shared(4, 4);
    FnGraph train, read;
    train.fn = [&shared](const Values& in) -> Values {
      const Value loss = mean(shared(in[0]) * shared(in[0]));
      loss.backward();
      return {loss};
    };
    read.fn = [&shared](const Values& in) -> Values { return {sum(shared(in[0]))}; };
    train.add_module("shared", shared);
    read.add_module("shared", shared);
    train.add_optimizer(optim::SGD(train.parameters(), {.lr = 0.1}));
    train.to(device);
    read.to(device);
    const Tensor x = RandomTensor(DType::kF32, {3, 4}, 5);
    std::vector<double> seen;
    for (int step = 0; step < 4; ++step) {
      Call(train, {x});
      seen.push_back(Call(read, {x})[0].item());
    }
    return seen;
  };
  EXPECT_TRUE(Follows(run(Device::Cuda(0)), run(Device::Cpu()), 1e-4));
}

// How many kernels the log names: one a line, but for those that one kernel has taken in.
int64_t CountKernels(const std::string& log) {
  std::istringstream lines(log);
  int64_t count = 0;
  for (std::string line; std::getline(lines, line);) {
    const size_t and_more = line.find(" and ");
    if (line.find(" more: one ") != std::string::npos) {
      count -= std::stoll(line.substr(and_more + 5));
    } else if (line[0] == '%') {
      ++count;
    }
  }
  return count;
}

TEST(CudaStep, AProfileHasEveryKernelOfTheStep) {
  Mlp graph({});
  graph.to(Device::Cuda(0));
  int64_t seen = 0;
  double seconds = 0;
  graph.set_profile([&](const ir::Node&, const kernels::Kernel& kernel, double s) {
    EXPECT_EQ(kernel.name().rfind("cuda:", 0), 0u);
    seconds += s;
    ++seen;
  });
  Call(graph, Batch(0));
  EXPECT_EQ(seen, CountKernels(graph.kernel_log()));
  EXPECT_GT(seconds, 0);
  EXPECT_LT(seconds, 60);
  graph.set_profile(nullptr);
  Call(graph, Batch(0));
  EXPECT_EQ(seen, CountKernels(graph.kernel_log()));
}

}  // namespace
}  // namespace halftone::nn
