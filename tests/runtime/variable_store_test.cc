#include "halftone/graph/runtime/variable_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

namespace halftone::runtime {
namespace {

using ::testing::ElementsAre;

using Kind = ir::Initializer::Kind;

std::shared_ptr<VariableStorage> Storage(const Shape& shape, ir::Initializer init,
                                         DType dtype = DType::kF32) {
  return std::make_shared<VariableStorage>(dtype, shape, ir::VariableKind::kParameter, true, init);
}

LoadRules Lenient(LoadRules rules) {
  rules.strict = false;
  return rules;
}

TEST(VariableStorage, MakesItsValueOnce) {
  VariableStorage v(DType::kF32, {3}, ir::VariableKind::kBuffer, false, {Kind::kConstant, 2, 0});
  EXPECT_FALSE(v.materialised());
  EXPECT_EQ(v.version(), 0u);
  ASSERT_TRUE(v.Materialise(0, "v").ok());
  EXPECT_THAT(v.value().ToVector(), ElementsAre(2, 2, 2));
  EXPECT_EQ(v.version(), 1u);
  const void* address = v.host_data();
  ASSERT_TRUE(v.Materialise(1, "w").ok());
  EXPECT_EQ(v.version(), 1u);
  ASSERT_TRUE(v.Assign(Tensor::Of(DType::kF32, {3}, {1, 2, 3})).ok());
  EXPECT_EQ(v.version(), 2u);
  EXPECT_EQ(v.host_data(), address) << "executables keep the address";
  EXPECT_THAT(v.value().ToVector(), ElementsAre(1, 2, 3));
}

TEST(VariableStorage, RefusesAnotherType) {
  VariableStorage v(DType::kF32, {2}, ir::VariableKind::kBuffer, false, {});
  EXPECT_EQ(Message(v.Assign(Tensor::Zeros(DType::kF32, {2, 1}))), "got f32[2,1], expected f32[2]");
  EXPECT_EQ(Message(v.Assign(Tensor::Zeros(DType::kF16, {2}))), "got f16[2], expected f32[2]");
  EXPECT_EQ(Message(v.Assign(Tensor())), "got an undefined tensor, expected f32[2]");
  EXPECT_FALSE(v.materialised());
}

TEST(VariableStorage, ReportsExhaustedMemory) {
  SetBufferLimit(BufferStats().live_bytes + 100);
  VariableStorage v(DType::kF32, {1000}, ir::VariableKind::kBuffer, false, {});
  EXPECT_EQ(v.Materialise(0, "v").code(), absl::StatusCode::kResourceExhausted);
  SetBufferLimit(0);
  EXPECT_TRUE(v.Materialise(0, "v").ok());
}

TEST(Initialise, StreamsDependOnSeedAndName) {
  const ir::Initializer uniform{Kind::kUniform, -2, 4};
  const auto make = [&](uint64_t seed, const char* name) {
    VariableStorage v(DType::kF32, {500}, ir::VariableKind::kParameter, true, uniform);
    EXPECT_TRUE(v.Materialise(seed, name).ok());
    return v.value();
  };
  EXPECT_TRUE(BitEqual(make(1, "a"), make(1, "a")));
  EXPECT_FALSE(BitEqual(make(1, "a"), make(2, "a")));
  EXPECT_FALSE(BitEqual(make(1, "a"), make(1, "b")));
  double sum = 0;
  for (double x : make(1, "a").ToVector()) {
    EXPECT_GE(x, -2);
    EXPECT_LT(x, 4);
    sum += x;
  }
  // Mean 1, deviation of the mean 6 / sqrt(12 * 500).
  EXPECT_NEAR(sum / 500, 1, 5 * 6 / std::sqrt(6000.0));
}

TEST(Initialise, NormalHasMeanAndDeviation) {
  VariableStorage v(DType::kF32, {4000}, ir::VariableKind::kParameter, true, {Kind::kNormal, 3, 2});
  ASSERT_TRUE(v.Materialise(9, "n").ok());
  double mean = 0;
  double square = 0;
  for (double x : v.value().ToVector()) {
    mean += x / 4000;
    square += (x - 3) * (x - 3) / 4000;
  }
  EXPECT_NEAR(mean, 3, 5 * 2 / std::sqrt(4000.0));
  EXPECT_NEAR(square, 4, 5 * 4 * std::sqrt(2.0 / 4000));
}

TEST(VariableStore, NamesAreAliases) {
  VariableStore store;
  const auto v = Storage({1}, {});
  ASSERT_TRUE(store.Bind("z", v).ok());
  ASSERT_TRUE(store.Bind("a", v).ok());
  ASSERT_TRUE(store.Bind("a", v).ok());
  EXPECT_EQ(*store.NameOf(v.get()), "z");
  EXPECT_EQ(store.Find("a"), v);
  EXPECT_EQ(store.Find("b"), nullptr);
  const absl::Status taken = store.Bind("a", Storage({1}, {}));
  EXPECT_EQ(taken.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Message(taken), "two variables are named \"a\"");
  ASSERT_TRUE(store.MaterialiseAll(0).ok());
  const StateDict state = store.Save().value();
  EXPECT_EQ(state.at("a").raw(), state.at("z").raw()) << "one tensor under both names";
  EXPECT_NE(state.at("a").raw(), v->host_data()) << "a copy";
}

TEST(VariableStore, ResolveMakesStateOrRefuses) {
  VariableStore store;
  ir::Variable momentum{"m",
                        ir::ValueType{DType::kF32, Shape{2}},
                        ir::VariableKind::kOptimizer,
                        false,
                        {Kind::kConstant, 5, 0}};
  const auto made = store.Resolve(momentum, 0);
  ASSERT_TRUE(made.ok());
  EXPECT_THAT((*made)->value().ToVector(), ElementsAre(5, 5));
  EXPECT_EQ(*store.Resolve(momentum, 0), *made);
  momentum.type.shape = Shape{3};
  EXPECT_EQ(Message(store.Resolve(momentum, 0).status()),
            "variable \"m\": the graph declares f32[3], the stored value is f32[2]");
}

TEST(VariableStore, StateLoadedEarlyIsTakenOver) {
  VariableStore store;
  LoadRules rules;
  rules.type_later = [](const std::string& name) {
    return name == "m" ? std::optional(ir::ValueType{DType::kF32, Shape{2}}) : std::nullopt;
  };
  EXPECT_EQ(Message(store.Load({{"m", Tensor::Zeros(DType::kF32, {3})}}, rules).status()),
            "load_state_dict: \"m\" is f32[3], expected f32[2]");
  ASSERT_TRUE(store.Load({{"m", Tensor::Of(DType::kF32, {2}, {1, 2})}}, rules).ok());
  EXPECT_EQ(store.Save()->count("m"), 1u);
  const auto made = store.Resolve(
      {"m", ir::ValueType{DType::kF32, Shape{2}}, ir::VariableKind::kOptimizer, false, {}}, 0);
  ASSERT_TRUE(made.ok());
  EXPECT_THAT((*made)->value().ToVector(), ElementsAre(1, 2));
}

// The type that was expected of it and the one it is declared with differ.
TEST(VariableStore, StateLoadedEarlyMustFitItsVariable) {
  VariableStore store;
  LoadRules rules;
  rules.type_later = [](const std::string&) {
    return std::optional(ir::ValueType{DType::kF32, Shape{2}});
  };
  ASSERT_TRUE(store.Load({{"m", Tensor::Of(DType::kF32, {2}, {1, 2})}}, rules).ok());
  const absl::Status status =
      store
          .Resolve(
              {"m", ir::ValueType{DType::kF32, Shape{3}}, ir::VariableKind::kOptimizer, false, {}},
              0)
          .status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), "loaded state \"m\": got f32[2], expected f32[3]");
}

TEST(VariableStore, LoadIsAllOrNothing) {
  VariableStore store;
  const auto v = Storage({2}, {Kind::kConstant, 1, 0});
  ASSERT_TRUE(store.Bind("v", v).ok());
  ASSERT_TRUE(store.Bind("w", Storage({2}, {})).ok());
  ASSERT_TRUE(store.MaterialiseAll(0).ok());
  const StateDict state = {{"v", Tensor::Of(DType::kF32, {2}, {3, 4})},
                           {"w", Tensor::Of(DType::kF64, {2}, {3, 4})},
                           {"x", Tensor::Of(DType::kF32, {1}, {3})}};
  EXPECT_EQ(Message(store.Load(state).status()),
            "load_state_dict: \"w\" is f64[2], expected f32[2]; unexpected: x");
  EXPECT_EQ(Message(store.Load({{"w", Tensor()}}).status()),
            "load_state_dict: \"w\" is an undefined tensor, expected f32[2]; missing: v");
  EXPECT_EQ(Message(store.Load({{"x", Tensor()}}).status()),
            "load_state_dict: \"x\" is an undefined tensor; missing: v, w");
  EXPECT_THAT(v->value().ToVector(), ElementsAre(1, 1));
}

// What waits under the name of a mismatched value is forgotten too.
TEST(VariableStore, WithoutStrictWhatFitsIsTakenAndStateOfAnotherTypeStartsAnew) {
  VariableStore store;
  const auto v = Storage({2}, {Kind::kConstant, 1, 0});
  ASSERT_TRUE(store.Bind("v", v).ok());
  LoadRules rules;
  rules.type_later = [](const std::string& name) {
    return name == "v" ? std::nullopt : std::optional(ir::ValueType{DType::kF32, Shape{1}});
  };
  const ir::Variable slot{"made",
                          ir::ValueType{DType::kF32, Shape{1}},
                          ir::VariableKind::kOptimizer,
                          false,
                          {Kind::kConstant, 5, 0}};
  const auto made = store.Resolve(slot, 0);
  ASSERT_TRUE(made.ok());
  const Tensor one = Tensor::Of(DType::kF32, {1}, {1});
  ASSERT_TRUE(store.Load({{"made", one}, {"waits", one}}, Lenient(rules)).ok());
  const Tensor two = Tensor::Of(DType::kF32, {2}, {3, 4});
  const auto report =
      store.Load({{"v", two}, {"made", two}, {"waits", two}, {"other", one}}, Lenient(rules));
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->mismatched.size(), 2u);
  EXPECT_EQ(report->mismatched[0].name, "made");
  EXPECT_EQ(report->mismatched[1].name, "waits");
  EXPECT_THAT(v->value().ToVector(), ElementsAre(3, 4));
  EXPECT_THAT((*made)->value().ToVector(), ElementsAre(5));
  ASSERT_TRUE(store.MaterialiseAll(0).ok());
  const StateDict state = store.Save().value();
  EXPECT_EQ(state.count("waits"), 0u);
  EXPECT_EQ(state.count("other"), 1u);
}

TEST(VariableStore, AStrictStateReplacesWhatWaits) {
  VariableStore store;
  LoadRules rules;
  rules.type_later = [](const std::string&) {
    return std::optional(ir::ValueType{DType::kF32, Shape{1}});
  };
  const Tensor one = Tensor::Of(DType::kF32, {1}, {1});
  ASSERT_TRUE(store.Load({{"m", one}}, rules).ok());
  ASSERT_TRUE(store.Load({{"n", one}}, Lenient(rules)).ok());
  EXPECT_EQ(store.Save()->size(), 2u) << "parts of a state add up";
  ASSERT_TRUE(store.Load({{"o", one}}, rules).ok());
  EXPECT_EQ(store.Save()->size(), 1u) << "whole states do not";
}

TEST(VariableStore, OptionalNamesAreReportedOnly) {
  VariableStore store;
  ASSERT_TRUE(store.Bind("s.scale", Storage({1}, {})).ok());
  ASSERT_TRUE(store.Bind("w", Storage({1}, {})).ok());
  LoadRules rules;
  rules.is_optional = [](const std::string& name) { return name.rfind("s.", 0) == 0; };
  const Tensor one = Tensor::Of(DType::kF32, {1}, {1});
  const auto report = store.Load({{"w", one}, {"s.tracker", one}}, rules);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->missing, ElementsAre("s.scale"));
  EXPECT_THAT(report->unexpected, ElementsAre("s.tracker"));
  EXPECT_EQ(Message(store.Load({{"s.scale", one}, {"x", one}}, rules).status()),
            "load_state_dict: missing: w; unexpected: x");
}

TEST(VariableStore, LongListsAreCutShort) {
  VariableStore store;
  StateDict state;
  for (int i = 0; i < 1000; ++i) state[Concat("x", i)] = Tensor::Scalar(DType::kF32, 1);
  const std::string text = Message(store.Load(state).status());
  EXPECT_LT(text.size(), 300u);
  EXPECT_EQ(text.substr(text.size() - 14), ", and 968 more");
}

}  // namespace
}  // namespace halftone::runtime
