// Schedules: the host formula against numbers worked out by hand, the graph nodes against the host
// formula, the text form.
#include "halftone/optim/lr_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/graph/ir/builder.h"
#include "halftone/kernels/reference_evaluator.h"
#include "halftone/optim/update_nodes.h"

namespace halftone::testing {
namespace {

using optim::CosineLR;
using optim::LinearWarmup;
using optim::LRSchedule;
using optim::StepLR;

TEST(LRSchedule, ConstantByDefault) {
  EXPECT_TRUE(LRSchedule().constant());
  EXPECT_EQ(LRSchedule().At(0.3, 1000), 0.3);
  EXPECT_EQ(LRSchedule().ToString(), "");
}

TEST(LRSchedule, StepHalvesEveryTen) {
  const LRSchedule s = StepLR(10, 0.5);
  EXPECT_EQ(s.At(0.8, 0), 0.8);
  EXPECT_EQ(s.At(0.8, 9), 0.8);
  EXPECT_EQ(s.At(0.8, 10), 0.4);
  EXPECT_EQ(s.At(0.8, 29), 0.2);
}

TEST(LRSchedule, CosineGoesToEtaMinAndStays) {
  const LRSchedule s = CosineLR(4, 0.1);
  EXPECT_DOUBLE_EQ(s.At(1, 0), 1);
  EXPECT_DOUBLE_EQ(s.At(1, 1), 0.1 + 0.9 * (1 + std::sqrt(0.5)) / 2);
  EXPECT_DOUBLE_EQ(s.At(1, 2), 0.55);
  EXPECT_DOUBLE_EQ(s.At(1, 4), 0.1);
  EXPECT_DOUBLE_EQ(s.At(1, 100), 0.1);
}

TEST(LRSchedule, WarmupIsPyTorchsLinearLR) {
  const LRSchedule s = LinearWarmup(4, 0.2);
  EXPECT_DOUBLE_EQ(s.At(1, 0), 0.2);
  EXPECT_DOUBLE_EQ(s.At(1, 1), 0.4);
  EXPECT_DOUBLE_EQ(s.At(1, 4), 1);
  EXPECT_DOUBLE_EQ(s.At(1, 9), 1);
  EXPECT_DOUBLE_EQ(LinearWarmup(4).At(3, 0), 1) << "PyTorch's start_factor is a third";
}

TEST(LRSchedule, ChainsApplyLeftToRight) {
  const LRSchedule s = CosineLR(4, 0.1) * LinearWarmup(2, 0.5);
  EXPECT_DOUBLE_EQ(s.At(1, 0), 0.5);
  EXPECT_DOUBLE_EQ(s.At(1, 4), 0.1);
  EXPECT_DOUBLE_EQ((LinearWarmup(2, 0.5) * CosineLR(4, 0.1)).At(1, 0), 0.5);
}

TEST(LRSchedule, TextIsAFixedPoint) {
  for (const LRSchedule& s :
       {LRSchedule(), StepLR(10, 0.5), StepLR(3), CosineLR(100), CosineLR(7, 1e-5), LinearWarmup(5),
        StepLR(2, 0.3) * LinearWarmup(500, 0.001)}) {
    absl::StatusOr<LRSchedule> parsed = LRSchedule::Parse(s.ToString());
    ASSERT_TRUE(parsed.ok()) << parsed.status();
    EXPECT_EQ(*parsed, s) << s.ToString();
  }
  EXPECT_EQ((StepLR(10, 0.5) * LinearWarmup(5)).ToString(), "step(10,0.5)*warmup(5)");
  EXPECT_EQ(*LRSchedule::Parse("cosine(100,0.0)"), CosineLR(100, 0));
}

TEST(LRSchedule, BadTextNamesTheColumn) {
  const std::pair<const char*, const char*> cases[] = {
      {"linear(3)", "schedule \"linear(3)\", column 1: expected step(, cosine( or warmup("},
      {"step(", "schedule \"step(\", column 6: expected a whole number"},
      {"step(3,x)", "schedule \"step(3,x)\", column 8: expected a number"},
      {"step(3", "schedule \"step(3\", column 7: expected ')'"},
      {"step(3)warmup(2)", "schedule \"step(3)warmup(2)\", column 8: expected '*'"},
      {"step(0,0.5)", "StepLR: step_size = 0; expected > 0"},
      {"cosine(3,-1)", "CosineLR: eta_min = -1; expected a number >= 0 that is finite in f32"},
      {"step(3,nan)", "StepLR: gamma = nan; expected a number >= 0 that is finite in f32"},
      {"warmup(3,1.5)", "LinearWarmup: start_factor = 1.5; expected 0..1"}};
  for (const auto& [text, message] : cases) {
    absl::Status status = LRSchedule::Parse(text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_EQ(Message(status), message);
  }
}

TEST(LRSchedule, F62AProductOfProductsIsAnErrorNotMemory) {
  LRSchedule s = StepLR(30);
  for (int i = 0; i < 8; ++i) s = s * s;
  EXPECT_TRUE(s.Validate().ok()) << s.Validate();
  EXPECT_EQ(s.terms().size(), 256u);
  const LRSchedule one_more = s * StepLR(30);
  EXPECT_EQ(Message(one_more.Validate()), "a product of 257 terms; expected at most 256");
  EXPECT_FALSE(one_more.constant());
  for (int i = 8; i < 60; ++i) s = s * s;
  EXPECT_EQ(s.Validate().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(s.Validate()), "a product of at least 1000000 terms; expected at most 256");
  EXPECT_EQ(s.terms().size(), 0u);

  std::string text = "step(30)";
  for (int i = 0; i < 300; ++i) text += "*step(30)";
  EXPECT_EQ(Message(LRSchedule::Parse(text).status()),
            "a product of 301 terms; expected at most 256");
}

// The nodes for `schedule`, evaluated.
float FromNodes(const LRSchedule& schedule, double base_lr, int64_t steps) {
  ir::Graph graph;
  ir::Builder b(&graph);
  ir::Expr lr = optim::LearningRateNodes(schedule, b.Scalar(DType::kF32, base_lr),
                                         b.Scalar(DType::kI64, static_cast<double>(steps)));
  EXPECT_TRUE(b.status().ok()) << b.status();
  std::map<const ir::Node*, Tensor> values;
  for (const auto& node : graph.nodes()) {
    std::vector<Tensor> inputs;
    for (ir::Value v : node->inputs()) inputs.push_back(values.at(v.node));
    auto outputs = kernels::ReferenceEvaluator().Evaluate(*node, inputs);
    EXPECT_TRUE(outputs.ok()) << outputs.status();
    values[node.get()] = (*outputs)[0];
  }
  return values.at(lr.value().node).data<float>()[0];
}

TEST(LearningRateNodes, AgreeWithTheHostFormulaInF32) {
  for (const LRSchedule& s : {LRSchedule(), StepLR(3, 0.7), CosineLR(10, 1e-4),
                              LinearWarmup(5, 0.1), CosineLR(50, 1e-4) * LinearWarmup(7)}) {
    for (int64_t t : {0, 1, 2, 3, 4, 5, 9, 10, 11, 1000, 20000000}) {
      const float base = 0.1f;
      EXPECT_FLOAT_EQ(FromNodes(s, base, t), static_cast<float>(s.At(base, t)))
          << s.ToString() << " at " << t;
    }
  }
}

}  // namespace
}  // namespace halftone::testing
