// Optimizer descriptions: PyTorch's defaults, validation, the marker.
#include "halftone/optim/optimizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/graph/ir/builder.h"
#include "halftone/optim/update_rule.h"

namespace halftone::testing {
namespace {

using optim::Adam;
using optim::AdamW;
using optim::Optimizer;
using optim::SGD;

// Two parameters by identity; nothing looks inside.
optim::ParameterList TwoParameters() {
  auto owner = std::make_shared<int>(0);
  auto other = std::make_shared<int>(0);
  auto as_ref = [](const std::shared_ptr<int>& p) {
    return optim::ParameterRef(p, reinterpret_cast<runtime::VariableStorage*>(p.get()));
  };
  return {as_ref(owner), as_ref(other)};
}

// The marker as a node; its record checks names, types and ranges again.
ir::Node* Marker(ir::Graph* graph, const Optimizer& optimizer) {
  ir::Builder b(graph);
  ir::Node* node = b.Root("optimizer", {}, optimizer.ToMarker("o", {"a", "b"}));
  EXPECT_NE(node, nullptr) << b.status();
  return node;
}

TEST(Optimizer, DefaultsArePyTorchs) {
  const SGD sgd(TwoParameters());
  EXPECT_EQ(sgd.lr(), 1e-3);
  EXPECT_EQ(sgd.hyper_parameters().GetFloat("momentum"), 0);
  const Adam adam(TwoParameters());
  EXPECT_EQ(adam.lr(), 1e-3);
  EXPECT_EQ(adam.hyper_parameters().GetFloat("beta1"), 0.9);
  EXPECT_EQ(adam.hyper_parameters().GetFloat("beta2"), 0.999);
  EXPECT_EQ(adam.hyper_parameters().GetFloat("eps"), 1e-8);
  EXPECT_EQ(adam.hyper_parameters().GetFloat("weight_decay"), 0);
  EXPECT_EQ(AdamW(TwoParameters()).hyper_parameters().GetFloat("weight_decay"), 1e-2);
}

TEST(Optimizer, TheMarkerCarriesEverything) {
  SGD sgd(TwoParameters(), {.lr = 0.1,
                            .momentum = 0.9,
                            .weight_decay = 1e-4,
                            .nesterov = true,
                            .lr_schedule = optim::StepLR(30),
                            .clip_norm = 2,
                            .scaler = "s",
                            .skip = optim::SkipPolicy::kAny});
  ASSERT_TRUE(sgd.Validate().ok()) << sgd.Validate();
  ir::Graph graph;
  const ir::Attributes& a = Marker(&graph, sgd)->attrs();
  EXPECT_EQ(a.GetString("name"), "o");
  EXPECT_EQ(a.GetString("rule"), "sgd");
  EXPECT_THAT(a.Get<std::vector<std::string>>("params"), ::testing::ElementsAre("a", "b"));
  EXPECT_EQ(a.GetFloat("lr"), 0.1);
  EXPECT_EQ(a.GetFloat("momentum"), 0.9);
  EXPECT_EQ(a.GetFloat("weight_decay"), 1e-4);
  EXPECT_TRUE(a.GetBool("nesterov"));
  EXPECT_EQ(a.GetString("schedule"), "step(30)");
  EXPECT_EQ(a.GetFloat("clip_norm"), 2);
  EXPECT_EQ(a.GetString("scaler"), "s");
  EXPECT_EQ(a.GetString("skip"), "any");
}

TEST(Optimizer, OptionsCanBeSetLater) {
  Adam adam(TwoParameters(), {.lr = 1e-4});
  adam.mutable_step_options().lr_schedule = optim::CosineLR(10);
  adam.mutable_step_options().scaler = "mine";
  ir::Graph graph;
  const ir::Attributes& a = Marker(&graph, adam)->attrs();
  EXPECT_EQ(a.GetString("schedule"), "cosine(10)");
  EXPECT_EQ(a.GetString("scaler"), "mine");
}

TEST(Optimizer, RulesNameTheirOpAndState) {
  ir::Graph graph;
  auto rule = [&](const Optimizer& optimizer) {
    return *optim::RuleOfMarker(Marker(&graph, optimizer)->attrs());
  };
  auto slots = [&](const Optimizer& optimizer) {
    std::vector<std::string> names;
    for (const optim::StateSlot& slot : rule(optimizer).slots) names.push_back(slot.name);
    return names;
  };
  EXPECT_EQ(rule(SGD(TwoParameters())).op, "sgd_update");
  EXPECT_THAT(slots(SGD(TwoParameters())), ::testing::IsEmpty());
  EXPECT_THAT(slots(SGD(TwoParameters(), {.momentum = 0.5})),
              ::testing::ElementsAre("momentum_buffer"));
  EXPECT_EQ(rule(Adam(TwoParameters())).op, "adam_update");
  EXPECT_FALSE(rule(Adam(TwoParameters())).attrs.GetBool("decoupled"));
  EXPECT_TRUE(rule(AdamW(TwoParameters())).attrs.GetBool("decoupled"));
  EXPECT_THAT(slots(AdamW(TwoParameters())), ::testing::ElementsAre("exp_avg", "exp_avg_sq"));
  ir::Attributes unknown{{"name", std::string("o")}, {"rule", std::string("ftrl")}};
  absl::Status status = optim::RuleOfMarker(unknown).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            "optimizer \"o\": rule \"ftrl\" is unknown; expected sgd, adam, "
            "adamw, sparse_adam, rmsprop, adagrad, lion, nadam or lamb");
}

void ExpectInvalid(const Optimizer& optimizer, const std::string& message) {
  absl::Status status = optimizer.Validate();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << message;
  EXPECT_EQ(Message(status), message);
}

TEST(Optimizer, ValidationNamesRuleOptionAndRange) {
  ExpectInvalid(SGD(TwoParameters(), {.lr = -1}),
                "SGD: lr = -1; expected a number >= 0 that is finite in f32");
  ExpectInvalid(SGD(TwoParameters(), {.momentum = std::nan("")}),
                "SGD: momentum = nan; expected a number >= 0 that is finite in f32");
  ExpectInvalid(SGD(TwoParameters(), {.nesterov = true}),
                "SGD: nesterov = true with momentum = 0, dampening = 0; expected momentum > 0 and "
                "dampening = 0");
  ExpectInvalid(Adam(TwoParameters(), {.betas = {0.9, 1}}),
                "Adam: beta2 = 1; expected 0 <= beta < 1");
  ExpectInvalid(AdamW(TwoParameters(), {.eps = -1e-8}),
                "AdamW: eps = -1e-08; expected a number >= 0 that is finite in f32");
  ExpectInvalid(Adam(TwoParameters(), {.clip_norm = -2}),
                "Adam: clip_norm = -2; expected a number >= 0 that is finite in f32 (0: off)");
  ExpectInvalid(Adam(TwoParameters(), {.lr_schedule = optim::StepLR(0)}),
                "Adam: lr_schedule: StepLR: step_size = 0; expected > 0");
}

TEST(Optimizer, ValidationLooksAtTheParameters) {
  ExpectInvalid(SGD({}), "SGD: no parameters; expected one or more");
  ExpectInvalid(SGD({nullptr}), "SGD: parameter 0 is null; expected a module's parameter");
  ExpectInvalid(SGD({{TwoParameters(), {}}, {{}, {}}}),
                "SGD: group 1: no parameters; expected one or more");
}

// A tied weight is in a list made by hand as often as it has names.
TEST(Optimizer, F23AParameterListedTwiceCountsOnce) {
  optim::ParameterList twice = TwoParameters();
  twice.push_back(twice[0]);
  const SGD sgd(twice), groups({{twice, {.lr = 1}}});
  ASSERT_TRUE(sgd.Validate().ok()) << sgd.Validate();
  EXPECT_THAT(sgd.parameters(), ::testing::ElementsAre(twice[0], twice[1]));
  EXPECT_THAT(groups.parameters(), ::testing::ElementsAre(twice[0], twice[1]));
}

// What is finite in f64 only would be infinite in the graph.
TEST(Optimizer, F65HyperParametersAreFiniteInF32) {
  const std::string range = " = 1e+39; expected a number >= 0 that is finite in f32";
  ExpectInvalid(SGD(TwoParameters(), {.lr = 1e39}), "SGD: lr" + range);
  ExpectInvalid(SGD(TwoParameters(), {.momentum = 1e39}), "SGD: momentum" + range);
  ExpectInvalid(SGD(TwoParameters(), {.weight_decay = 1e39}), "SGD: weight_decay" + range);
  ExpectInvalid(SGD(TwoParameters(), {.dampening = -1e39}),
                "SGD: dampening = -1e+39; expected a number that is finite in f32");
  ExpectInvalid(Adam(TwoParameters(), {.eps = 1e39}), "Adam: eps" + range);
  ExpectInvalid(Adam(TwoParameters(), {.clip_norm = 1e39}),
                "Adam: clip_norm" + range + " (0: off)");
  ExpectInvalid(AdamW(TwoParameters(), {.lr_schedule = optim::StepLR(1, 1e39)}),
                "AdamW: lr_schedule: StepLR: gamma" + range);
  ExpectInvalid(AdamW(TwoParameters(), {.lr_schedule = optim::CosineLR(1, 1e39)}),
                "AdamW: lr_schedule: CosineLR: eta_min" + range);
  // 1e-50 is 0 in f32, which would turn clipping off.
  for (const double value : {1e39, 1e-50, -1.0}) {
    ExpectInvalid(SGD(TwoParameters(), {.clip_value = value}),
                  Concat("SGD: clip_value = ", value,
                         "; expected 0 (off) or a positive number that f32 can hold"));
  }
  const SGD largest(TwoParameters(), {.lr = 3.4028234663852886e38, .clip_value = 1.5e-45});
  EXPECT_TRUE(largest.Validate().ok()) << largest.Validate();
}

// Weight decay for one group, another rate and schedule for the other; the rest is the optimizer's.
TEST(ParameterGroups, WhatAGroupDoesNotSetIsTheOptimizers) {
  const optim::ParameterList first = TwoParameters(), second = TwoParameters();
  const AdamW adam(
      {{first, {.weight_decay = 0.5}},
       {second, {.lr = 0.25, .betas = {{0.5, 0.75}}, .lr_schedule = optim::StepLR(7)}}},
      {.lr = 2, .eps = 1e-4, .lr_schedule = optim::CosineLR(10), .clip_norm = 3});
  ASSERT_TRUE(adam.Validate().ok()) << adam.Validate();
  EXPECT_EQ(adam.parameters().size(), 4u);
  const ir::Attributes a = adam.ToMarker("o", {"a", "b"}, 0), b = adam.ToMarker("o", {"c", "d"}, 1);
  EXPECT_EQ(a.GetInt("group"), 0);
  EXPECT_EQ(b.GetInt("group"), 1);
  EXPECT_EQ(a.GetFloat("weight_decay"), 0.5);
  EXPECT_EQ(b.GetFloat("weight_decay"), 1e-2);
  EXPECT_EQ(a.GetFloat("lr"), 2);
  EXPECT_EQ(b.GetFloat("lr"), 0.25);
  EXPECT_EQ(a.GetFloat("beta1"), 0.9);
  EXPECT_EQ(b.GetFloat("beta1"), 0.5);
  EXPECT_EQ(b.GetFloat("beta2"), 0.75);
  EXPECT_EQ(a.GetFloat("eps"), 1e-4);
  EXPECT_EQ(b.GetFloat("eps"), 1e-4);
  EXPECT_EQ(a.GetString("schedule"), "cosine(10)");
  EXPECT_EQ(b.GetString("schedule"), "step(7)");
  EXPECT_EQ(a.GetFloat("clip_norm"), 3);
  EXPECT_EQ(b.GetFloat("clip_norm"), 3);
  EXPECT_THAT(b.Get<std::vector<std::string>>("params"), ::testing::ElementsAre("c", "d"));
}

TEST(ParameterGroups, ErrorsNameTheGroup) {
  ExpectInvalid(SGD({{TwoParameters(), {}}, {TwoParameters(), {.lr = -1}}}),
                "SGD: group 1: lr = -1; expected a number >= 0 that is finite in f32");
  // What a group has of the optimizer must fit what it sets.
  ExpectInvalid(
      SGD({{TwoParameters(), {.momentum = 0.5}}, {TwoParameters(), {}}}, {.nesterov = true}),
      "SGD: group 1: nesterov = true with momentum = 0, dampening = 0; expected momentum > "
      "0 and dampening = 0");
  ExpectInvalid(Adam({{TwoParameters(), {.lr_schedule = optim::StepLR(0)}}, {TwoParameters(), {}}}),
                "Adam: group 0: lr_schedule: StepLR: step_size = 0; expected > 0");
  ExpectInvalid(SGD(std::vector<SGD::Group>{}), "SGD: no parameters; expected one or more");
}

}  // namespace
}  // namespace halftone::testing
