// Less working memory, half of it where it is activations, for small versions of the reference
// workloads: the same bits.
#include <gtest/gtest.h>

#include <memory>

#include "halftone/examples/models/edsr.h"
#include "halftone/examples/models/resnet.h"
#include "halftone/examples/models/transformer.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/nn/same_bits.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::halftone::testing::RandomTensor;

struct SmallModel {
  const char* name;
  std::unique_ptr<Module> (*make)();
  std::vector<Tensor> in;
  Value (*loss)(const Value& out, const Value& target);
  // Of the working memory: what the largest activations, or gradients that wait for the updates, take
  // is the least.
  double share = 0.5;
};

Value TokenLoss(const Value& out, const Value& target) {
  return cross_entropy(reshape(out, {-1, 40}), target);
}

Tensor Ids(const Shape& shape, int64_t classes) {
  Tensor ids = Tensor::Empty(DType::kI64, shape);
  for (int64_t i = 0; i < ids.num_elements(); ++i) ids.set(i, static_cast<double>(i * 7 % classes));
  return ids;
}

template <bool causal>
std::unique_ptr<Module> SmallTransformer() {
  return std::make_unique<models::Transformer>(models::TransformerOptions{.vocabulary = 40,
                                                                          .positions = 64,
                                                                          .width = 32,
                                                                          .heads = 2,
                                                                          .inner = 128,
                                                                          .blocks = 6,
                                                                          .causal = causal,
                                                                          .pre_norm = causal});
}

std::vector<SmallModel> SmallModels() {
  return {
      {"resnet",
       [] { return std::unique_ptr<Module>(std::make_unique<models::ResNet>(18, 10, 1)); },
       {RandomTensor(DType::kF32, {16, 1, 64, 64}, 1), Ids({16}, 10)},
       [](const Value& out, const Value& target) { return cross_entropy(out, target); },
       0.9},
      {"bert", &SmallTransformer<false>, {Ids({8, 64}, 40), Ids({512}, 40)}, &TokenLoss},
      {"gpt2", &SmallTransformer<true>, {Ids({8, 64}, 40), Ids({512}, 40)}, &TokenLoss},
      {"edsr",
       [] { return std::unique_ptr<Module>(std::make_unique<models::Edsr>(16, 8)); },
       {RandomTensor(DType::kF32, {2, 3, 12, 12}, 1), RandomTensor(DType::kF32, {2, 3, 48, 48}, 2)},
       [](const Value& out, const Value& target) { return mean(abs(out - target)); },
       0.85}};
}

TEST(RecomputeModels, LessWorkingMemoryAndTheSameBits) {
  for (const SmallModel& small : SmallModels()) {
    for (const bool amp : {false, true}) {
      SCOPED_TRACE(Concat(small.name, amp ? " bf16" : " f32"));
      const auto train = [&](int64_t budget) {
        const std::unique_ptr<Module> model = small.make();
        FnGraph graph;
        graph.add_module("model", *model);
        graph.add_optimizer(optim::AdamW(graph.parameters(), {.lr = 1e-3}));
        if (amp) graph.config.enable_amp(true, {.dtype = DType::kBF16});
        graph.config.memory_budget = budget;
        graph.fn = [&](const Values& in) -> Values {
          const Value loss = small.loss((*model)(in[0]), in[1]);
          loss.backward();
          return {loss};
        };
        return TrainSteps(graph, [&](int) { return small.in; });
      };
      const StepsTaken want = train(0);
      const auto budget = static_cast<int64_t>(small.share * static_cast<double>(want.arena_bytes));
      const StepsTaken got = train(budget);
      ExpectSameBits(got, want);
      EXPECT_LE(static_cast<int64_t>(got.arena_bytes), budget);
    }
  }
}

}  // namespace
}  // namespace halftone::nn
