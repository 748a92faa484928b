// save_checkpoint and load_checkpoint of graphs: before and after compiling, with and without AMP.
#include <gtest/gtest.h>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::nn {
namespace {

using ::halftone::testing::Bytes;
using ::halftone::testing::TempDir;
using ::halftone::testing::WriteBytes;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two linear layers, dropout and Adam. `low`: AMP with this dtype.
class Model : public FnGraph {
 public:
  explicit Model(uint64_t seed = 0, std::optional<DType> low = {})
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = sum(b(drop(relu(a(in[0])))) * in[0]);
          loss.backward();
          return {loss};
        }),
        a(2, 2),
        b(2, 2),
        drop(0.5) {
    config.seed = seed;
    if (low.has_value()) config.enable_amp(true, {.dtype = low});
    add_module("a", a);
    add_module("b", b);
    add_module("drop", drop);
    optimizer = add_optimizer(optim::Adam(parameters(), {.lr = 0.25}));
  }
  Linear a, b;
  Dropout drop;
  OptimizerHandle optimizer;
};

const Tensor kInput = F32({4, 2}, {1, -2, 3, 4, -5, 6, 7, -8});

void TakeSteps(Graph& graph, int count) {
  for (int i = 0; i < count; ++i) Call(graph, {kInput});
}

TEST(GraphCheckpoint, ResumesBitForBit) {
  const TempDir dir;
  const std::string path = dir.Path("c"), end = dir.Path("end");
  Model reference;
  TakeSteps(reference, 3);
  ASSERT_TRUE(reference.save_checkpoint(path, {{"epoch", "1"}}).ok());
  TakeSteps(reference, 3);
  ASSERT_TRUE(reference.save_checkpoint(end).ok());

  for (const bool compiled : {false, true}) {
    Model model;
    if (compiled) TakeSteps(model, 2);
    std::map<std::string, std::string> metadata;
    const auto report = model.load_checkpoint(path, /*strict=*/true, &metadata);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_THAT(report->missing, IsEmpty());
    EXPECT_THAT(report->unexpected, IsEmpty());
    EXPECT_EQ(metadata["epoch"], "1");
    EXPECT_EQ(model.run_count(), 3u);
    TakeSteps(model, 3);
    ASSERT_TRUE(model.save_checkpoint(dir.Path("again")).ok());
    EXPECT_EQ(Bytes(dir.Path("again")), Bytes(end)) << compiled;
  }
}

TEST(GraphCheckpoint, TiedParametersAreStoredOnceAndStayTied) {
  const TempDir dir;
  Linear a(64, 64), b(64, 64);
  b.weight = a.weight;
  FnGraph graph([&](const Values& in) -> Values { return {b(a(in[0]))}; });
  graph.add_module("a", a);
  graph.add_module("b", b);
  ASSERT_TRUE(graph.save_checkpoint(dir.Path("c")).ok());
  EXPECT_LT(Bytes(dir.Path("c")).size(), 2 * 64 * 64 * 4u);
  const auto read = runtime::ReadCheckpoint(dir.Path("c"));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->tensors.at("a.weight").raw(), read->tensors.at("b.weight").raw());
  ASSERT_TRUE(a.weight.set_value(Tensor::Zeros(DType::kF32, {64, 64})).ok());
  ASSERT_TRUE(graph.load_checkpoint(dir.Path("c")).ok());
  EXPECT_TRUE(BitEqual(b.weight.value(), read->tensors.at("a.weight")));
}

TEST(GraphCheckpoint, ReportsWhatDoesNotFit) {
  const TempDir dir;
  const std::string path = dir.Path("c");
  Model model;
  auto state = *model.state_dict();
  const Tensor weight = model.a.weight.value();
  state["a.weight"] = F32({2, 2}, {9, 9, 9, 9});
  state.erase("b.bias");
  state["head.weight"] = F32({1}, {1});
  ASSERT_TRUE(runtime::WriteCheckpoint(path, {state, {}}).ok());
  const absl::Status status = model.load_checkpoint(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), path + ": load_state_dict: missing: b.bias; unexpected: head.weight");
  EXPECT_TRUE(BitEqual(model.a.weight.value(), weight));
  const auto report = model.load_checkpoint(path, /*strict=*/false);
  ASSERT_TRUE(report.ok());
  EXPECT_THAT(report->missing, ElementsAre("b.bias"));
  EXPECT_THAT(report->unexpected, ElementsAre("head.weight"));
  EXPECT_EQ(model.a.weight.value().at(0), 9);

  state["a.weight"] = F32({3}, {1, 1, 1});
  ASSERT_TRUE(runtime::WriteCheckpoint(path, {state, {}}).ok());
  EXPECT_THAT(Message(model.load_checkpoint(path).status()),
              HasSubstr(path + ": load_state_dict: \"a.weight\" is f32[3], expected f32[2,2]"));
}

TEST(GraphCheckpoint, ADamagedFileChangesNothing) {
  const TempDir dir;
  const std::string path = dir.Path("c");
  Model model;
  ASSERT_TRUE(model.save_checkpoint(path).ok());
  TakeSteps(model, 1);
  std::string bytes = Bytes(path);
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  WriteBytes(path, bytes);
  const Tensor weight = model.a.weight.value();
  const absl::Status status = model.load_checkpoint(path).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Message(status), HasSubstr(path + ": tensor \"run_count\" has checksum "));
  EXPECT_TRUE(BitEqual(model.a.weight.value(), weight));
  EXPECT_EQ(model.run_count(), 1u);
}

TEST(GraphCheckpoint, ErrorsOfTheConstructorAndOfTheFolder) {
  const TempDir dir;
  FnGraph broken;
  broken.add_parameter("", Parameter({1}, {}));
  EXPECT_THAT(Message(broken.save_checkpoint(dir.Path("c"))), HasSubstr("add_parameter"));
  EXPECT_THAT(dir.Names(), IsEmpty());
  Model model;
  EXPECT_EQ(Message(model.save_checkpoint(dir.Path("no/c"))),
            dir.Path("no/c.writing") + ": no such file or directory");
  EXPECT_EQ(Message(model.load_checkpoint(dir.Path("c")).status()),
            dir.Path("c") + ": no such file or directory");
}

// Every pair of graphs with and without AMP, the one that loads compiled or not: the weights and
// the optimizer's state arrive, and only what AMP adds is reported.
TEST(GraphCheckpoint, PassesBetweenAmpAndNonAmpGraphs) {
  const TempDir dir;
  const std::string path = dir.Path("c");
  const std::optional<DType> kinds[] = {std::nullopt, DType::kF16, DType::kBF16};
  for (const auto& from : kinds) {
    Model saved(1, from);
    TakeSteps(saved, 2);
    ASSERT_TRUE(saved.save_checkpoint(path).ok());
    const StateDict state = *saved.state_dict();
    for (const auto& to : kinds) {
      for (const bool compiled : {false, true}) {
        SCOPED_TRACE(Concat(from ? Name(*from) : "f32", " to ", to ? Name(*to) : "f32",
                            compiled ? ", compiled" : ", not compiled"));
        Model model(2, to);
        if (compiled) TakeSteps(model, 1);
        const auto report = model.load_checkpoint(path);
        ASSERT_TRUE(report.ok()) << report.status();
        for (const auto* names : {&report->missing, &report->unexpected}) {
          for (const std::string& name : *names) {
            EXPECT_TRUE(name.rfind("scaler0.", 0) == 0 || name == "optimizer0.first_nonfinite")
                << name;
          }
        }
        if (from == to) {
          EXPECT_THAT(report->missing, IsEmpty());
          EXPECT_THAT(report->unexpected, IsEmpty());
        }
        ASSERT_TRUE(model.compile({kInput}).ok());
        const StateDict loaded = *model.state_dict();
        for (const auto& [name, value] : state) {
          const auto found = loaded.find(name);
          if (found == loaded.end()) {
            EXPECT_NE(from, to) << name;
          } else {
            EXPECT_TRUE(BitEqual(found->second, value)) << name;
          }
        }
        EXPECT_EQ(loaded.count("optimizer0.a.weight.exp_avg"), 1u);
      }
    }
  }
}

TEST(GraphCheckpoint, TheStateOfAnAutomaticScalerWaitsForCompiling) {
  const TempDir dir;
  Model saved(0, DType::kF16);
  TakeSteps(saved, 1);
  ASSERT_TRUE(saved.grad_scaler().set_scale(128).ok());
  ASSERT_TRUE(saved.save_checkpoint(dir.Path("c")).ok());
  Model model(0, DType::kF16);
  const auto report = model.load_checkpoint(dir.Path("c"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->unexpected, IsEmpty());
  ASSERT_TRUE(model.compile({kInput}).ok());
  EXPECT_EQ(model.grad_scaler().scale(), 128);
}

TEST(GraphCheckpoint, TheStateOfAScalerIsNeitherRequiredNorRefused) {
  const TempDir dir;
  Model plain;
  ASSERT_TRUE(plain.save_checkpoint(dir.Path("plain")).ok());
  Model scaled;
  const ScalerHandle scaler = scaled.set_grad_scaler(amp::GradScaler({.init_scale = 64}));
  auto report = scaled.load_checkpoint(dir.Path("plain"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_THAT(report->missing, ElementsAre("scaler0.consecutive_skips", "scaler0.growth_tracker",
                                           "scaler0.hysteresis_left", "scaler0.scale",
                                           "scaler0.skipped_steps", "scaler0.total_steps"));
  EXPECT_EQ(scaler.scale(), 64);
  ASSERT_TRUE(scaled.save_checkpoint(dir.Path("scaled")).ok());
  report = plain.load_checkpoint(dir.Path("scaled"));
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->unexpected.size(), 6u);

  // What is merely called like it is not.
  for (const char* name : {"scaler.scale", "scaler0.scales", "scaler0", "scalerx.scale"}) {
    auto state = *plain.state_dict();
    state[name] = Tensor::Scalar(DType::kF32, 1);
    EXPECT_EQ(Message(plain.load_state_dict(state).status()),
              Concat("load_state_dict: unexpected: ", name));
  }
}

}  // namespace
}  // namespace halftone::nn
