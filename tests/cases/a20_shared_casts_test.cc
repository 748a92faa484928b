// A20, Oneflow-Inc/oneflow#9961: weights were cast again at each use.
#include <gtest/gtest.h>

#include "halftone/graph/ir/text.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/passes/amp/amp_graph.h"
#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/passes/rewrite/rewrite.h"
#include "halftone/tests/support/step_runner.h"

namespace halftone::testing {
namespace {

std::string Text(const std::string& dtype) {
  return R"g(graph @g(%x: f32[2,2]) {
    amp() {deny=["mean"], dtype=)g" +
         dtype + R"g(}
    %w = variable "w" {} : f32[2,2]
    %m1 = matmul(%x, %w)
    %h1 = relu(%m1)
    %m2 = matmul(%h1, %w)
    %h2 = relu(%m2)
    %h3 = matmul(%h2, %w)
    %q = mul(%h3, %h3)
    %l = mean(%q) {axes=[]}
    %dw = gradient(%l, %w)
    return l=%l, dw=%dw
  })g";
}

TEST(CaseA20, TheForwardPartHasThreeCasts) {
  auto graph = ir::Parse(Text("f16"));
  ASSERT_TRUE(graph.ok()) << graph.status();
  passes::PassContext context;
  context.target = *kernels::FindFixedTarget("cpu-avx512bf16");
  ASSERT_TRUE(passes::MakeInsertAmpCasts()->Run(**graph, context).ok());
  std::vector<std::string> casts;
  for (const auto& node : (*graph)->nodes()) {
    if (passes::IsCast(*node)) casts.push_back(node->name());
  }
  EXPECT_EQ(casts, (std::vector<std::string>{"x_f16", "w_f16", "h3_f32"}));
}

TEST(CaseA20, LossAndGradientAreExact) {
  for (const char* dtype : {"f16", "bf16"}) {
    StepRunner run = StepRunner::CompileOrDie(Text(dtype));
    run.state()["w"] = Tensor::Of(DType::kF32, Shape{2, 2}, {0.5, -0.25, 1, 0.5});
    TensorMap out = run.StepOrDie({{"x", Tensor::Of(DType::kF32, Shape{2, 2}, {1, -1, 2, 0.5})}});
    EXPECT_EQ(out["l"].item(), 0.0439453125) << dtype;
    EXPECT_EQ(out["dw"].ToVector(), (std::vector<double>{0.43359375, -0.0703125, 0.029296875, 0}))
        << dtype;
  }
}

}  // namespace
}  // namespace halftone::testing
