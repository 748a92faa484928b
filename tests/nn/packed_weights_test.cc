// Weights held in the order of kernels, as a user of nn::Graph sees them: whatever writes a parameter, the
// next call sees it.
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using testing::RandomTensor;

// What the libraries hold in an order of their own: weights of 3x3 and 1x1, of a product.
class SmallNet : public FnGraph {
 public:
  explicit SmallNet(DType low = DType::kF32)
      : conv(8, 32, 3, {.padding = 1}), point(32, 48, 1), fc(48 * 4 * 4, 16) {
    add_module("conv", conv);
    add_module("point", point);
    add_module("fc", fc);
    add_optimizer(optim::SGD(parameters(), {.lr = 0.05}));
    if (low != DType::kF32) config.enable_amp(true, {.dtype = low});
    fn = [this](const Values& in) -> Values {
      const Value y = fc(flatten(relu(point(relu(conv(in[0]))))));
      if (!evaluates()) mean(y * y).backward();
      return {y};
    };
  }
  bool evaluates() const { return evaluating_; }
  std::vector<double> Evaluate(const Tensor& x) {
    evaluating_ = true;
    eval();
    std::vector<double> y = Call1(*this, {x});
    return y;
  }
  void Train(const Tensor& x) {
    evaluating_ = false;
    train();
    Call(*this, {x});
  }

  Conv2d conv, point;
  Linear fc;

 private:
  bool evaluating_ = false;
};

Tensor Images(int64_t count, uint64_t seed = 1) {
  return RandomTensor(DType::kF32, {count, 8, 4, 4}, seed);
}

class PackedWeights : public ::testing::TestWithParam<DType> {};

// The same network without: equal up to the order of sums.
void ExpectClose(const std::vector<double>& a, const std::vector<double>& b, DType low) {
  const double epsilon = low == DType::kF32 ? 1e-6 : low == DType::kF16 ? 2e-3 : 2e-2;
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], epsilon * (1 + std::abs(b[i])));
}

TEST_P(PackedWeights, FollowEveryWriteOfAParameter) {
  SmallNet packed(GetParam()), plain(GetParam());
  plain.config.pack_weights = false;
  ASSERT_TRUE(plain.load_state_dict(*packed.state_dict()).ok());
  const auto compare = [&](const char* when) {
    SCOPED_TRACE(when);
    ExpectClose(packed.Evaluate(Images(3)), plain.Evaluate(Images(3)), GetParam());
  };
  compare("at first");
  EXPECT_THAT(packed.compiled_text(), HasSubstr("packed=true"));
  EXPECT_THAT(plain.compiled_text(), Not(HasSubstr("packed=true")));
  const std::vector<double> first = packed.Evaluate(Images(3));
  for (int step = 0; step < 2; ++step) {
    packed.Train(Images(4, 2));
    EXPECT_THAT(packed.compiled_text(), Not(HasSubstr("packed=true")));
    ASSERT_TRUE(plain.load_state_dict(*packed.state_dict()).ok());
    compare("after a step");
    EXPECT_NE(packed.Evaluate(Images(3)), first);
  }
  // Another size of the batch reads the same copy.
  ExpectClose(packed.Evaluate(Images(5)), plain.Evaluate(Images(5)), GetParam());
  for (Parameter* parameter : {&packed.conv.weight, &packed.point.weight, &packed.fc.weight}) {
    Tensor halved = parameter->value().Clone();
    for (int64_t i = 0; i < halved.num_elements(); ++i) halved.set(i, halved.at(i) / 2);
    ASSERT_TRUE(parameter->set_value(halved).ok());
  }
  ASSERT_TRUE(plain.load_state_dict(*packed.state_dict()).ok());
  compare("after set_value");
}

INSTANTIATE_TEST_SUITE_P(Precisions, PackedWeights,
                         ::testing::Values(DType::kF32, DType::kF16, DType::kBF16),
                         [](const auto& info) { return std::string(Name(info.param)); });

// Frozen layers of a training step, and their gradients by what they read.
TEST(PackedWeights, OfFrozenLayersInATrainingStep) {
  Linear frozen(8, 16), head(16, 4);
  FnGraph graph([&](const Values& in) -> Values {
    const Value y = head(relu(frozen(in[0])));
    mean(y * y).backward();
    return {y};
  });
  graph.add_module("frozen", frozen);
  graph.add_module("head", head);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  frozen.freeze();
  const Tensor x = RandomTensor(DType::kF32, {2, 8}, 1);
  Call(graph, {x});
  const std::string text = graph.compiled_text();
  EXPECT_THAT(text, HasSubstr("linear(%in0, %frozen.weight, %frozen.bias) {packed=true}"));
  EXPECT_THAT(text, HasSubstr("linear(%relu, %head.weight, %head.bias) :"));
  frozen.unfreeze();
  Call(graph, {x});
  EXPECT_THAT(graph.compiled_text(), Not(HasSubstr("packed=true")));
}

// A square matrix and its transpose, which are packed alike: x w^T and x w.
TEST(PackedWeights, ATransposeIsAnotherOrder) {
  Linear layer(48, 48, {.bias = false});
  FnGraph graph([&](const Values& in) -> Values {
    return {layer(in[0]), matmul(in[0], Value(layer.weight))};
  });
  graph.add_module("layer", layer);
  graph.eval();
  Tensor w = Tensor::Zeros(DType::kF32, {48, 48}), x = Tensor::Zeros(DType::kF32, {2, 48});
  for (int64_t i = 0; i < 48; ++i) w.set(48 * i + 47 - i, static_cast<double>(i + 1));
  x.set(0, 1);
  x.set(48 + 1, 1);
  ASSERT_TRUE(layer.weight.set_value(w).ok());
  const std::vector<Tensor> out = Call(graph, {x});
  EXPECT_THAT(graph.compiled_text(), HasSubstr("matmul(%in0, %layer.weight) {packed=true}"));
  // x has 1 at column 0, then 1. x w^T takes columns of w: w[47,0] = 48, w[46,1] = 47; x w takes
  // rows: w[0,47] = 1, w[1,46] = 2.
  EXPECT_EQ(out[0].at(47), 48);
  EXPECT_EQ(out[0].at(48 + 46), 47);
  EXPECT_EQ(out[1].at(47), 1);
  EXPECT_EQ(out[1].at(48 + 46), 2);
}

// A 16-bit cast that nothing reads but the packing is not held beside its variable.
TEST(PackedWeights, HoldNoCast) {
  Linear layer(1024, 2048);
  FnGraph graph([&](const Values& in) -> Values { return {layer(in[0])}; });
  graph.add_module("layer", layer);
  graph.config.enable_amp(true, {.dtype = DType::kBF16});
  graph.eval();
  const Tensor x = RandomTensor(DType::kF32, {2, 1024}, 1);
  Call(graph, {x});
  const int64_t packed = BufferStats().live_bytes;
  graph.config.pack_weights = false;
  Call(graph, {x});
  const int64_t both = BufferStats().live_bytes;  // of which the kept cast is new
  EXPECT_GE(both - packed, int64_t{1024} * 2048 * 2);
}

// Large batches gain nothing by it.
TEST(PackedWeights, NotWhereEachWeightMeetsManyPositions) {
  Linear layer(64, 64);
  FnGraph graph([&](const Values& in) -> Values { return {layer(in[0])}; });
  graph.add_module("layer", layer);
  graph.eval();
  for (const auto& [rows, packed] : {std::pair(1000, true), std::pair(1024, false)}) {
    Call(graph, {RandomTensor(DType::kF32, {rows, 64}, 1)});
    EXPECT_EQ(graph.compiled_text().find("packed=true") != std::string::npos, packed) << rows;
  }
}

TEST(PackedWeights, OfAConstant) {
  const Tensor w = RandomTensor(DType::kF32, {32, 16}, 7),
               x = RandomTensor(DType::kF32, {3, 32}, 8);
  FnGraph packed([&](const Values& in) -> Values { return {matmul(in[0], constant(w))}; });
  FnGraph plain([&](const Values& in) -> Values { return {matmul(in[0], constant(w))}; });
  plain.config.pack_weights = false;
  for (int call = 0; call < 2; ++call)
    ExpectClose(Call1(packed, {x}), Call1(plain, {x}), DType::kF32);
  EXPECT_THAT(packed.compiled_text(), HasSubstr("packed=true"));
}

}  // namespace
}  // namespace halftone::nn
