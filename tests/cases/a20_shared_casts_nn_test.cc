// A20, Oneflow-Inc/oneflow#9961: a weight used three times is cast once; the forward part pays
// three casts in all.
#include <set>

#include "halftone/graph/ir/text.h"
#include "halftone/kernels/fixed_targets.h"
#include "halftone/passes/amp/insert_amp_casts.h"
#include "halftone/passes/pass_manager.h"
#include "halftone/tests/cases/case_util.h"

namespace halftone::testing {
namespace {

nn::Value ThreeLayers(const nn::Value& x, const nn::Value& w) {
  const nn::Value h1 = nn::relu(nn::matmul(x, w));
  const nn::Value h2 = nn::relu(nn::matmul(h1, w));
  const nn::Value h3 = nn::matmul(h2, w);
  return nn::mean(h3 * h3);
}

TEST(A20SharedCastsNn, ValuesAreExact) {
  for (const Device& device : CaseDevices()) {
    FnGraph graph([](FnGraph& g, const nn::Values& in) -> nn::Values {
      const nn::Value w = g.param("w");
      const nn::Value loss = ThreeLayers(in[0], w);
      return {loss, nn::gradients(loss, {w})[0]};
    });
    graph.to(device);
    graph.config.enable_amp(true, {.dtype = DType::kF16, .deny = {"mean", "mul"}});
    graph.AddParam("w", Tensor::Of(DType::kF32, {2, 2}, {0.5, -0.25, 1, 0.5}));
    const auto out = Step(graph, {Tensor::Of(DType::kF32, {2, 2}, {1, -1, 2, 0.5})});
    ASSERT_EQ(out.size(), 2u);
    ExpectValues(out[0], {0.0439453125});
    ExpectValues(out[1], {0.43359375, -0.0703125, 0.029296875, 0});
  }
}

TEST(A20SharedCastsNn, ForwardPaysThreeCasts) {
  auto graph = ir::Parse(
      R"ir(graph @three(%x: f32[2,2]) {
  %w = variable "w" {init="constant(0)", kind="parameter", trainable=true} : f32[2,2]
  %a1 = matmul(%x, %w)
  %h1 = relu(%a1)
  %a2 = matmul(%h1, %w)
  %h2 = relu(%a2)
  %h3 = matmul(%h2, %w)
  %sq = mul(%h3, %h3)
  %loss = mean(%sq) {axes=[]}
  amp() {dtype=f16, deny=["mean", "mul"]}
  return %loss
})ir");
  ASSERT_TRUE(graph.ok()) << graph.status();
  const auto target = kernels::FindFixedTarget("cuda-sm90");
  ASSERT_TRUE(target.ok());
  passes::PassManager manager;
  manager.Add(passes::MakeInsertAmpCasts());
  passes::PassContext context;
  context.target = *target;
  ASSERT_TRUE(manager.Run(**graph, context).ok());
  std::set<std::pair<std::string, DType>> seen;
  int casts = 0;
  for (const auto& node : (*graph)->nodes()) {
    if (node->op().name != "cast") continue;
    ++casts;
    const ir::Value from = node->input(0);
    EXPECT_TRUE(seen.emplace(from.node->name(), node->output_type().dtype).second)
        << "cast twice: " << from.node->name();
    EXPECT_NE(from.node->op().name, "cast") << "a cast of a cast";
  }
  EXPECT_EQ(casts, 3) << (*graph)->ToString();
}

}  // namespace
}  // namespace halftone::testing
