// add_plateau: base rates that follow a metric, and their state.
#include <gtest/gtest.h>

#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;

class PlateauModel : public FnGraph {
 public:
  explicit PlateauModel(const optim::ReduceLROnPlateauOptions& options = {.factor = 0.5,
                                                                          .patience = 1})
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(fc(in[0]));
          loss.backward();
          return {loss};
        }),
        fc(2, 1) {
    add_module("fc", fc);
    const auto [bias, weight] = split_parameters({"*.bias"});
    optimizer = add_optimizer(optim::SGD(
        {{weight, {}}, {bias, {.lr = 0.125, .lr_schedule = optim::StepLR(1, 0.5)}}}, {.lr = 1}));
    plateau = add_plateau(optimizer, optim::ReduceLROnPlateau(options));
  }
  bool Reduced(double metric) {
    const absl::StatusOr<bool> reduced = plateau.step(metric);
    EXPECT_TRUE(reduced.ok()) << reduced.status();
    return reduced.ok() && *reduced;
  }
  using Graph::add_plateau;

  Linear fc;
  OptimizerHandle optimizer;
  PlateauHandle plateau;
};

const Tensor kPlateauInput = F32({1, 2}, {1, -2});

TEST(Plateau, ReducesTheRatesOfAllGroups) {
  PlateauModel model;
  EXPECT_EQ(model.plateau.best(), INFINITY);
  EXPECT_FALSE(model.Reduced(3));
  EXPECT_FALSE(model.Reduced(3.5));
  EXPECT_EQ(model.plateau.num_bad_epochs(), 1);
  EXPECT_TRUE(model.Reduced(3.25));
  EXPECT_EQ(model.plateau.best(), 3);
  EXPECT_EQ(model.optimizer.group(0).lr(), 0.5);
  EXPECT_EQ(model.optimizer.group(1).lr(), 0.0625);
  Call(model, {kPlateauInput});
  Call(model, {kPlateauInput});
  EXPECT_EQ(model.builds, 1) << "a new rate compiles nothing";
}

TEST(Plateau, TellsWhetherARateHasChanged) {
  PlateauModel model({.factor = 0.5, .patience = 0, .min_lr = 0.25});
  EXPECT_FALSE(model.Reduced(3));
  EXPECT_TRUE(model.Reduced(4)) << "1 to 0.5";
  EXPECT_TRUE(model.Reduced(4)) << "to 0.25";
  EXPECT_FALSE(model.Reduced(4)) << "all at min_lr";
  EXPECT_EQ(model.optimizer.group(0).lr(), 0.25);
}

TEST(Plateau, IsSavedWithTheGraph) {
  PlateauModel a({.factor = 0.5, .patience = 2, .cooldown = 3}),
      b({.factor = 0.5, .patience = 2, .cooldown = 3});
  const double metrics[] = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14};
  for (int i = 0; i < 5; ++i) a.Reduced(metrics[i]);
  Call(a, {kPlateauInput});
  const StateDict state = *a.state_dict();
  EXPECT_EQ(state.at("optimizer0.plateau.best").item(), 5);
  EXPECT_EQ(state.at("optimizer0.plateau.num_bad_epochs").item(), 0);
  EXPECT_EQ(state.at("optimizer0.plateau.cooldown_counter").item(), 2);
  ASSERT_TRUE(b.load_state_dict(state).ok());
  for (int i = 5; i < 10; ++i) {
    EXPECT_EQ(a.Reduced(metrics[i]), b.Reduced(metrics[i])) << i;
    EXPECT_EQ(a.optimizer.lr(), b.optimizer.lr()) << i;
  }
  EXPECT_EQ(b.plateau.cooldown_counter(), a.plateau.cooldown_counter());
}

TEST(Plateau, MistakesAreToldByTheNextCall) {
  {
    PlateauModel model;
    model.add_plateau(model.optimizer, optim::ReduceLROnPlateau());
    EXPECT_THAT(Message(CallStatus(model, {kPlateauInput})),
                HasSubstr("add_plateau was called twice for optimizer0; expected once"));
  }
  {
    PlateauModel model, other;
    model.add_plateau(other.optimizer, optim::ReduceLROnPlateau());
    EXPECT_THAT(Message(CallStatus(model, {kPlateauInput})),
                HasSubstr("add_plateau: \"\" is no optimizer of this graph; expected what "
                          "add_optimizer gave"));
  }
  PlateauModel model({.factor = 2});
  EXPECT_THAT(Message(CallStatus(model, {kPlateauInput})),
              HasSubstr("optimizer0: ReduceLROnPlateau: factor = 2; expected 0 <= factor < 1"));
  EXPECT_THAT(Message(model.plateau.step(1).status()),
              HasSubstr("step: optimizer0 has no ReduceLROnPlateau"));
  EXPECT_THAT(Message(PlateauHandle().step(1).status()),
              HasSubstr("step: the handle belongs to no graph"));
}

}  // namespace
}  // namespace halftone::nn
