// A10, elixir-nx/axon PR#547: mixed precision must not touch integers: token ids and class labels
// beyond 2048 would become others.
#include <cmath>

#include "halftone/tests/cases/case_util.h"

namespace halftone::testing {
namespace {

void ExpectNoCastOfIntegers(const nn::Graph& graph) {
  ASSERT_NE(graph.compiled_graph(), nullptr);
  for (const auto& node : graph.compiled_graph()->nodes()) {
    if (node->op().name != "cast") continue;
    EXPECT_TRUE(IsFloat(node->input_type(0).dtype)) << node->Label();
    EXPECT_TRUE(IsFloat(node->output_type().dtype)) << node->Label();
  }
}

TEST(A10IntegerIds, EmbeddingFindsItsRows) {
  for (const Device& device : CaseDevices()) {
    for (DType low : {DType::kF16, DType::kBF16}) {
      FnGraph graph([](FnGraph& g, const nn::Values& in) -> nn::Values {
        const nn::Value table = g.param("table");
        const nn::Value rows = nn::embedding(in[0], table);
        // A product behind the lookup, so that mixed precision has something to do.
        const nn::Value y = nn::matmul(rows, g.param("one"));
        return {y, nn::gradients(nn::sum(y), {table})[0]};
      });
      graph.to(device);
      graph.config.enable_amp(true, {.dtype = low});
      Tensor table = Tensor::Empty(DType::kF32, {4096, 1});
      for (int i = 0; i < 4096; ++i) table.data<float>()[i] = static_cast<float>(i % 7);
      graph.AddParam("table", table);
      graph.AddParam("one", Tensor::Full(DType::kF32, {1, 1}, 1));
      const std::vector<double> ids = {257, 2047, 2048, 2049, 2051, 4095};
      const auto out = Step(graph, {Tensor::Of(DType::kI64, {6}, ids)});
      ASSERT_EQ(out.size(), 2u);
      ExpectValues(out[0], {5, 3, 4, 5, 0, 0});
      std::vector<double> gradient(4096, 0);
      for (double id : ids) gradient[static_cast<int>(id)] = 1;
      ExpectValues(out[1], gradient);
      ExpectNoCastOfIntegers(graph);
    }
  }
}

TEST(A10IntegerIds, CrossEntropyFindsItsClass) {
  constexpr int kClasses = 3000;
  for (const Device& device : CaseDevices()) {
    for (DType low : {DType::kF16, DType::kBF16}) {
      FnGraph graph([](FnGraph& g, const nn::Values& in) -> nn::Values {
        const nn::Value logits = nn::matmul(in[0], g.param("w"));
        const nn::Value loss = nn::cross_entropy(logits, in[1]);
        return {loss, nn::gradients(loss, {g.param("w")})[0]};
      });
      graph.to(device);
      graph.config.enable_amp(true, {.dtype = low});
      graph.AddParam("w", Tensor::Zeros(DType::kF32, {1, kClasses}));
      const auto out =
          Step(graph, {Tensor::Full(DType::kF32, {1, 1}, 1), Tensor::Of(DType::kI64, {1}, {2049})});
      ASSERT_EQ(out.size(), 2u);
      EXPECT_NEAR(out[0].item(), std::log(3000.0), 1e-3);
      for (int i = 0; i < kClasses; ++i) {
        if (i == 2049) {
          EXPECT_LT(out[1].at(i), 0) << i;
        } else {
          EXPECT_GE(out[1].at(i), 0) << i;
        }
      }
      ExpectNoCastOfIntegers(graph);
    }
  }
}

}  // namespace
}  // namespace halftone::testing
