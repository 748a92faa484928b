// Loading a state that does not quite fit: what is taken, what is reported, names that have
// changed.
#include <gtest/gtest.h>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::nn {
namespace {

using ::halftone::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A backbone and a head of `classes` rows, trained with Adam.
class LoadedModel : public FnGraph {
 public:
  explicit LoadedModel(int64_t classes, uint64_t seed = 0)
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(head(backbone(in[0])));
          loss.backward();
          return {loss};
        }),
        backbone(3, 4),
        head(4, classes) {
    config.seed = seed;
    add_module("backbone", backbone);
    add_module("head", head);
    optimizer = add_optimizer(optim::Adam(parameters(), {.lr = 0.5}));
  }
  Linear backbone, head;
  OptimizerHandle optimizer;
};

const Tensor kLoadedInput = F32({1, 3}, {1, -2, 3});

std::vector<std::string> Texts(const std::vector<LoadMismatch>& mismatched) {
  std::vector<std::string> texts;
  for (const LoadMismatch& m : mismatched) {
    texts.push_back(Concat(m.name, ": ", m.got, " for ", m.expected));
  }
  return texts;
}

// The values of `state` under `names` are those of `other`.
void ExpectSame(const StateDict& state, const StateDict& other,
                std::initializer_list<const char*> names) {
  for (const char* name : names) EXPECT_TRUE(BitEqual(state.at(name), other.at(name))) << name;
}

TEST(PartialLoad, F06TakesTheBackboneAndReportsTheHeadWithBothTypes) {
  LoadedModel five(5, 1), two(2, 2);
  const StateDict saved = *five.state_dict();
  const StateDict before = *two.state_dict();
  const auto report = two.load_state_dict(saved, /*strict=*/false);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->missing, IsEmpty());
  EXPECT_THAT(report->unexpected, IsEmpty());
  EXPECT_THAT(Texts(report->mismatched),
              ElementsAre("head.bias: f32[5] for f32[2]", "head.weight: f32[5,4] for f32[2,4]"));
  EXPECT_EQ(report->ToString(),
            "mismatched: \"head.bias\" is f32[5], expected f32[2]; \"head.weight\" is f32[5,4], "
            "expected f32[2,4]");
  const StateDict after = *two.state_dict();
  ExpectSame(after, saved, {"backbone.weight", "backbone.bias"});
  ExpectSame(after, before, {"head.weight", "head.bias"});
  Call(two, {kLoadedInput});
}

TEST(PartialLoad, StrictSaysTheSameAndChangesNothing) {
  LoadedModel five(5, 1), two(2, 2);
  const StateDict before = *two.state_dict();
  EXPECT_EQ(Message(two.load_state_dict(*five.state_dict()).status()),
            "load_state_dict: \"head.bias\" is f32[5], expected f32[2]; "
            "\"head.weight\" is f32[5,4], expected f32[2,4]");
  const StateDict after = *two.state_dict();
  for (const auto& [name, value] : before) EXPECT_TRUE(BitEqual(after.at(name), value)) << name;
}

// Its slots begin at zero, the others go on; in a graph that has or has not run.
TEST(PartialLoad, SlotsOfAMismatchedParameterStartAnew) {
  LoadedModel five(5, 1);
  for (int i = 0; i < 3; ++i) Call(five, {kLoadedInput});
  const StateDict saved = *five.state_dict();
  for (const bool compiled : {false, true}) {
    SCOPED_TRACE(compiled);
    LoadedModel two(2, 2);
    if (compiled) {
      for (int i = 0; i < 2; ++i) Call(two, {kLoadedInput});
    }
    const Tensor head = two.head.weight.value();
    const auto report = two.load_state_dict(saved, /*strict=*/false);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(Texts(report->mismatched),
                ElementsAre("head.bias: f32[5] for f32[2]", "head.weight: f32[5,4] for f32[2,4]",
                            "optimizer0.head.bias.exp_avg: f32[5] for f32[2]",
                            "optimizer0.head.bias.exp_avg_sq: f32[5] for f32[2]",
                            "optimizer0.head.weight.exp_avg: f32[5,4] for f32[2,4]",
                            "optimizer0.head.weight.exp_avg_sq: f32[5,4] for f32[2,4]"));
    ASSERT_TRUE(two.compile({kLoadedInput}).ok());
    const StateDict after = *two.state_dict();
    EXPECT_TRUE(BitEqual(after.at("head.weight"), head));
    EXPECT_TRUE(
        BitEqual(after.at("optimizer0.head.weight.exp_avg"), Tensor::Zeros(DType::kF32, {2, 4})));
    EXPECT_TRUE(
        BitEqual(after.at("optimizer0.head.bias.exp_avg_sq"), Tensor::Zeros(DType::kF32, {2})));
    ExpectSame(after, saved,
               {"backbone.weight", "optimizer0.backbone.weight.exp_avg",
                "optimizer0.backbone.bias.exp_avg_sq", "optimizer0.applied_steps", "run_count"});
    Call(two, {kLoadedInput});
    EXPECT_EQ(two.optimizer.applied_steps(), 4);
  }
}

TEST(PartialLoad, AnotherDtypeIsAMismatch) {
  LoadedModel model(2);
  StateDict state = *model.state_dict();
  state["backbone.bias"] = Tensor::Of(DType::kF64, {4}, {1, 2, 3, 4});
  state["head.bias"] = F32({2}, {8, 9});
  const auto report = model.load_state_dict(state, /*strict=*/false);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(Texts(report->mismatched), ElementsAre("backbone.bias: f64[4] for f32[4]"));
  EXPECT_THAT(model.head.bias.value().ToVector(), ElementsAre(8, 9));
}

TEST(PartialLoad, UndefinedTensorsAndTheRunCountAreReportedToo) {
  LoadedModel model(2);
  Call(model, {kLoadedInput});
  StateDict state = *model.state_dict();
  state["backbone.bias"] = Tensor();
  state["nobody"] = Tensor();
  state["run_count"] = F32({}, {7});
  const auto report = model.load_state_dict(state, /*strict=*/false);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(
      Texts(report->mismatched),
      ElementsAre("backbone.bias: an undefined tensor for f32[4]", "run_count: f32[] for i64[]"));
  EXPECT_THAT(report->unexpected, ElementsAre("nobody"));
  EXPECT_EQ(model.run_count(), 1u);
}

TEST(PartialLoad, NothingToSayIsAnEmptyText) {
  LoadedModel model(2);
  EXPECT_EQ(model.load_state_dict(*model.state_dict())->ToString(), "");
  const auto report = model.load_state_dict({{"x", F32({}, {1})}}, /*strict=*/false);
  EXPECT_EQ(report->ToString(),
            "missing: backbone.bias, backbone.weight, head.bias, head.weight, "
            "optimizer0.applied_steps, optimizer0.lr; unexpected: x");
}

TEST(PartialLoad, CheckpointsAlike) {
  const TempDir dir;
  LoadedModel five(5, 1), two(2, 2);
  Call(five, {kLoadedInput});
  ASSERT_TRUE(five.save_checkpoint(dir.Path("c"), {{"epoch", "3"}}).ok());
  EXPECT_THAT(Message(two.load_checkpoint(dir.Path("c")).status()),
              HasSubstr("/c: load_state_dict: \"head.bias\" is f32[5], expected f32[2]; "));
  std::map<std::string, std::string> metadata;
  const auto report = two.load_checkpoint(dir.Path("c"), {.strict = false}, &metadata);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->mismatched.size(), 6u);
  EXPECT_EQ(metadata.at("epoch"), "3");
  EXPECT_TRUE(BitEqual(two.backbone.weight.value(), five.backbone.weight.value()));
}

// `state` with `prefix` before the names of parameters, and within those of their slots.
StateDict Prefixed(const StateDict& state, const std::string& prefix) {
  StateDict all;
  for (const auto& [name, value] : state) {
    const bool slot =
        name.rfind("optimizer0.backbone", 0) == 0 || name.rfind("optimizer0.head", 0) == 0;
    const bool own = name.rfind("backbone", 0) == 0 || name.rfind("head", 0) == 0;
    all[slot ? "optimizer0." + prefix + name.substr(11) : own ? prefix + name : name] = value;
  }
  return all;
}

TEST(Rename, APrefixIsTakenAwayOrPutBeforeAndSlotsFollow) {
  LoadedModel saved(2, 1);
  Call(saved, {kLoadedInput});
  const StateDict state = *saved.state_dict();
  const StateDict prefixed = Prefixed(state, "module.");
  ASSERT_EQ(prefixed.count("optimizer0.module.head.bias.exp_avg"), 1u);
  LoadedModel model(2, 2);
  const auto report = model.load_state_dict(prefixed, {.rename = {{"module.*", "*"}}});
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_TRUE(model.compile({kLoadedInput}).ok());
  const StateDict after = *model.state_dict();
  for (const auto& [name, value] : state) EXPECT_TRUE(BitEqual(after.at(name), value)) << name;

  // The other way, for modules: a graph's names carry what add_module was told.
  const StateDict bare = *saved.backbone.state_dict();
  LoadedModel other(2, 2);
  const auto loaded =
      other.load_state_dict(bare, {.strict = false, .rename = {{"*", "backbone.*"}}});
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(loaded->unexpected, IsEmpty());
  EXPECT_TRUE(BitEqual(other.backbone.weight.value(), saved.backbone.weight.value()));
}

TEST(Rename, TheFirstPatternThatFitsIsUsed) {
  LoadedModel model(2);
  StateDict state = *model.state_dict();
  state["body.0.weight"] = F32({4, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  state["body.0.bias"] = F32({4}, {1, 2, 3, 4});
  state["fc.b"] = F32({2}, {5, 6});
  for (const char* name : {"backbone.weight", "backbone.bias", "head.bias"}) state.erase(name);
  const auto report = model.load_state_dict(state, {.rename = {{"fc.b", "head.bias"},
                                                               {"body.0.*", "backbone.*"},
                                                               {"fc.*", "x.*"},
                                                               {"*.gamma", "*.weight"}}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->unused_renames, ElementsAre("fc.*", "*.gamma"));
  EXPECT_THAT(model.head.bias.value().ToVector(), ElementsAre(5, 6));
  EXPECT_EQ(model.backbone.weight.value().at(11), 12);
}

TEST(Rename, AFunctionSeesParametersOnly) {
  LoadedModel saved(2, 1);
  Call(saved, {kLoadedInput});
  std::vector<std::string> seen;
  LoadOptions options;
  options.rename_with = [&seen](const std::string& name) {
    seen.push_back(name);
    return name.substr(4);
  };
  LoadedModel model(2, 2);
  const auto report = model.load_state_dict(Prefixed(*saved.state_dict(), "old."), options);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(BitEqual(model.head.bias.value(), saved.head.bias.value()));
  for (const std::string& name : seen) EXPECT_EQ(name.substr(0, 4), "old.") << name;
}

TEST(Rename, AnEmptyNewNameLeavesAnEntryOut) {
  LoadedModel five(5, 1), two(2, 2);
  Call(five, {kLoadedInput});
  const StateDict before = *two.state_dict();
  const auto report =
      two.load_state_dict(*five.state_dict(), {.strict = false, .rename = {{"head.*", ""}}});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->mismatched, IsEmpty());
  EXPECT_THAT(report->missing, ElementsAre("head.bias", "head.weight"));
  ExpectSame(*two.state_dict(), before, {"head.bias", "head.weight"});
  EXPECT_TRUE(BitEqual(two.backbone.bias.value(), five.backbone.bias.value()));
}

TEST(Rename, TwoValuesUnderOneNameAreAnErrorThatNamesBoth) {
  LoadedModel model(2);
  const StateDict state = *model.state_dict();
  for (const bool strict : {false, true}) {
    const absl::Status status =
        model.load_state_dict(state, {.strict = strict, .rename = {{"head.bias", "backbone.bias"}}})
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(status),
              "load_state_dict: \"backbone.bias\" and \"head.bias\" "
              "of the state both become \"backbone.bias\", with different values");
  }
}

TEST(Rename, PatternsThatMeanNothingAreErrors) {
  LoadedModel model(2);
  const StateDict state = *model.state_dict();
  const std::pair<const char*, const char*> bad[] = {
      {"", "x"}, {"a.*", "b"}, {"a", "b.*"}, {"a.*.*", "b.*"}, {"a.*", "*.b.*"}};
  for (const auto& [from, to] : bad) {
    const absl::Status status =
        model.load_state_dict(state, {.strict = false, .rename = {{from, to}}}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(Message(status),
              Concat("load_state_dict: rename \"", from, "\" to \"", to,
                     "\": expected a name, or one '*' on both sides (a new name may be empty)"));
  }
}

// Written by an earlier version, which counted all runs.
TEST(PartialLoad, OldCheckpointsLoad) {
  const std::string path = HALFTONE_SOURCE_DIR "/tests/fuzz/corpus/checkpoint/small.ckpt";
  const auto old = runtime::ReadCheckpoint(path);
  ASSERT_TRUE(old.ok()) << old.status();
  ASSERT_EQ(old->tensors.count("run_count"), 1u);
  FnGraph graph([](const Values& in) -> Values { return {in[0]}; });
  const auto report = graph.load_checkpoint(path, /*strict=*/false);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(static_cast<double>(graph.run_count()), old->tensors.at("run_count").item());
}

// Weights from elsewhere: a file of f16 and f64, with other names, into f32 parameters. 0.1 in f16 is
// 0x2E66 = 0.0999755859375.
TEST(PartialLoad, ConvertsPrecisionsOnRequest) {
  LoadedModel model(2);
  StateDict state = *model.state_dict();
  const Tensor weight = F32({2, 4}, {0.1, 1, -2, 3, 65504, 0.5, 0, -0.0});
  state["head.weight"] = weight.To(DType::kF16);
  state["head.bias"] = Tensor::Of(DType::kF64, {2}, {1.0 / 3, 1});
  const StateDict before = *model.state_dict();
  EXPECT_THAT(Message(model.load_state_dict(state).status()),
              HasSubstr("\"head.bias\" is f64[2], expected f32[2]; \"head.weight\" is f16[2,4]"));
  ExpectSame(*model.state_dict(), before, {"head.weight", "head.bias"});

  const auto report = model.load_state_dict(state, {.convert = true});
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->mismatched, IsEmpty());
  StateDict after = *model.state_dict();
  EXPECT_EQ(after.at("head.weight").at(0), 0.0999755859375);
  EXPECT_EQ(after.at("head.weight").at(4), 65504);
  EXPECT_EQ(after.at("head.bias").at(0), static_cast<double>(1.0F / 3.0F));
  EXPECT_EQ(after.at("head.weight").dtype(), DType::kF32);

  // Other shapes, and numbers that are no floats, are as they were.
  state["head.bias"] = Tensor::Of(DType::kI64, {2}, {1, 2});
  state["head.weight"] = Tensor::Zeros(DType::kF16, {4, 2});
  const auto lenient = model.load_state_dict(state, {.strict = false, .convert = true});
  ASSERT_TRUE(lenient.ok()) << lenient.status();
  EXPECT_THAT(Texts(lenient->mismatched),
              ElementsAre("head.bias: i64[2] for f32[2]", "head.weight: f16[4,2] for f32[2,4]"));
  // A module alone, and state of an optimizer that compiling makes.
  ASSERT_TRUE(model.head
                  .load_state_dict({{"weight", weight.To(DType::kBF16)},
                                    {"bias", Tensor::Of(DType::kF16, {2}, {1, 2})}},
                                   {.convert = true})
                  .ok());
  EXPECT_EQ(model.head.state_dict()->at("bias").at(1), 2);
  Call(model, {kLoadedInput});
  state = *model.state_dict();
  for (auto& entry : state) {
    if (entry.second.dtype() == DType::kF32) entry.second = entry.second.To(DType::kF64);
  }
  LoadedModel fresh(2);
  ASSERT_TRUE(fresh.load_state_dict(state, {.convert = true}).ok());
  Call(fresh, {kLoadedInput});
  Call(model, {kLoadedInput});
  after = *model.state_dict();
  const StateDict same = *fresh.state_dict();
  for (const auto& [name, value] : after) EXPECT_TRUE(BitEqual(same.at(name), value)) << name;
}

// Of a module alone, PyTorch's way.
TEST(ModuleState, SavesAndLoadsParametersAndBuffersOfAllLevels) {
  const auto make = [] {
    auto net = std::make_unique<Sequential>();
    net->emplace<Linear>(2, 3);
    auto& inner = net->emplace<Sequential>();
    inner.emplace<BatchNorm2d>(3);
    return net;
  };
  const auto saved = make(), loaded = make();
  const auto state = saved->state_dict();
  ASSERT_TRUE(state.ok());
  std::vector<std::string> names;
  for (const auto& entry : *state) names.push_back(entry.first);
  EXPECT_THAT(names, ElementsAre("0.bias", "0.weight", "1.0.bias", "1.0.num_batches_tracked",
                                 "1.0.running_mean", "1.0.running_var", "1.0.weight"));
  EXPECT_NE(state->at("0.weight").at(0), state->at("0.weight").at(1));
  Parameter running_mean = loaded->named_buffers()[0].second;
  ASSERT_TRUE(running_mean.set_value(F32({3}, {4, 5, 6})).ok());
  ASSERT_TRUE(loaded->load_state_dict(*state).ok());
  const StateDict after = *loaded->state_dict();
  for (const auto& [name, value] : after) {
    EXPECT_TRUE(BitEqual(state->at(name), value)) << name;
  }

  StateDict other = *state;
  other["1.0.bias"] = F32({2}, {1, 1});
  EXPECT_EQ(Message(loaded->load_state_dict(other).status()),
            "load_state_dict: \"1.0.bias\" is f32[2], expected f32[3]");
  EXPECT_EQ(loaded->load_state_dict(other, /*strict=*/false)->mismatched.size(), 1u);
  StateDict wrapped;
  for (const auto& [name, value] : *state) wrapped["module." + name] = value;
  EXPECT_TRUE(loaded->load_state_dict(wrapped, {.rename = {{"module.*", "*"}}}).ok());
}

TEST(ModuleState, GraphsSeeWhatAModuleLoaded) {
  LoadedModel model(2);
  Call(model, {kLoadedInput});
  ASSERT_TRUE(model.head
                  .load_state_dict({{"weight", F32({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8})},
                                    {"bias", F32({2}, {0, 0})}})
                  .ok());
  EXPECT_EQ(model.state_dict()->at("head.weight").at(7), 8);
}

TEST(ModuleState, MistakesOfTheConstructorAreItsErrors) {
  Linear broken(-1, 2);
  EXPECT_THAT(Message(broken.state_dict().status()), HasSubstr("in_features is -1"));
  EXPECT_THAT(Message(broken.load_state_dict({}).status()), HasSubstr("in_features is -1"));
}

}  // namespace
}  // namespace halftone::nn
