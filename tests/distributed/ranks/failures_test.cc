// What goes wrong on one rank ends in the same way on all.
#include <filesystem>
#include <limits>

#include "halftone/distributed/communicator.h"
#include "halftone/tests/distributed/ranks/rank_folder.h"
#include "halftone/tests/distributed/ranks/rank_models.h"

namespace halftone::nn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Batch OrdinaryBatch(int step = 0) { return BatchOf({8 * Size(), 12}, step); }

TEST(Overflow, OnOneRankSkipsTheStepOnAll) {
  RankModel model(Mlp(), true);
  const ScalerHandle scaler =
      model.graph.set_grad_scaler(amp::GradScaler({.init_scale = 1024, .growth_interval = 100}));
  Call(model.graph, OwnPart(OrdinaryBatch()));
  EXPECT_FALSE(model.graph.last_step_skipped());
  StateDict before = model.State();
  std::vector<Tensor> in = OwnPart(OrdinaryBatch(1));
  if (Rank() == 1) in[0].set(3, std::numeric_limits<double>::infinity());
  Call(model.graph, in);
  EXPECT_TRUE(model.graph.last_step_skipped());
  EXPECT_EQ(scaler.scale(), 512);
  StateDict after = model.State();
  ExpectSameOnAllRanks(after);
  for (const auto& [name, value] : before) {
    if (name.find("net.") == 0) {
      EXPECT_TRUE(BitEqual(after.at(name), value)) << name;
    }
  }
  Call(model.graph, OwnPart(OrdinaryBatch(2)));
  EXPECT_FALSE(model.graph.last_step_skipped());
  EXPECT_EQ(scaler.scale(), 512);
  ExpectSameOnAllRanks(model.State());
}

TEST(Fault, OnOneRankFailsTheStepOnAllWithItsMessage) {
  for (const int64_t bucket_bytes : {1, 1 << 20}) {
    RankModel model(Mlp(), true, {.bucket_bytes = bucket_bytes});
    Call(model.graph, OwnPart(OrdinaryBatch()));
    const StateDict before = model.State();
    std::vector<Tensor> in = OwnPart(OrdinaryBatch(1));
    if (Rank() == 1) in[1].set(5, 10);
    const absl::Status status = StepStatus(model.graph, in);
    EXPECT_TRUE(absl::IsOutOfRange(status)) << status;
    EXPECT_THAT(Message(status), AllOf(StartsWith("rank 1: "), HasSubstr("10")));
    StateDict after = model.State();
    for (const auto& [name, value] : before) {
      if (name != "run_count") {
        EXPECT_TRUE(BitEqual(after.at(name), value)) << name;
      }
    }
    Call(model.graph, OwnPart(OrdinaryBatch(2)));
    ExpectSameOnAllRanks(model.State());
  }
}

// Where an index is read that nothing of the loss depends on, and buckets may have gone before.
TEST(Fault, BesideTheLossFailsTheStepOnAll) {
  Linear layer(12, 10);
  RankGraph graph;
  graph.fn = [&layer](const Values& in) -> Values {
    const Value loss = cross_entropy(layer(in[0]), in[1]);
    loss.backward();
    return {loss, gather(in[0], in[2], 0)};
  };
  graph.add_module("layer", layer);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
  graph.config.data_parallel({.bucket_bytes = 1});
  std::vector<Tensor> in = OwnPart(OrdinaryBatch());
  in.push_back(I64({2}, {0, 7}));
  Call(graph, in);
  const StateDict before = *graph.state_dict();
  if (Rank() == 1) in[2].set(1, 8);
  EXPECT_THAT(Message(StepStatus(graph, in)), StartsWith("rank 1: "));
  const StateDict after = *graph.state_dict();
  EXPECT_TRUE(BitEqual(after.at("layer.weight"), before.at("layer.weight")));
  EXPECT_TRUE(BitEqual(after.at("layer.bias"), before.at("layer.bias")));
  in[2].set(1, 7);
  Call(graph, in);
  ExpectSameOnAllRanks(*graph.state_dict());
}

TEST(Fault, InAMicroBatchFailsItOnAll) {
  RankModel model(Mlp(), true);
  model.graph.config.accumulate_calls(4);
  Call(model.graph, OwnPart(OrdinaryBatch()));
  std::vector<Tensor> in = OwnPart(OrdinaryBatch(1));
  if (Rank() == 1) in[1].set(0, -1);
  EXPECT_THAT(Message(StepStatus(model.graph, in)), StartsWith("rank 1: "));
  Call(model.graph, OwnPart(OrdinaryBatch(1)));
  EXPECT_TRUE(model.graph.flush().ok());
  EXPECT_EQ(model.graph.accumulated_micro_batches(), 0u);
  ExpectSameOnAllRanks(model.State());
}

// The error of the first call, the same on all.
std::string FirstError(Graph& graph, const std::vector<Tensor>& in) {
  const absl::Status status = StepStatus(graph, in);
  const auto all = distributed::World().Exchange(Message(status), "test");
  EXPECT_TRUE(all.ok()) << all.status();
  for (const std::string& text : *all) EXPECT_EQ(text, Message(status));
  return Message(status);
}

TEST(Disagreement, NamesTheOptionAndTheRank) {
  RankModel model(Mlp(), true, {.bucket_bytes = Rank() == 1 ? 100 : 4096});
  EXPECT_EQ(FirstError(model.graph, OwnPart(OrdinaryBatch())),
            Concat("rank 1: graph @", model.graph.name(),
                   ": data_parallel.bucket_bytes: 100, of rank 0 4096; expected the same program "
                   "on all ranks"));
}

TEST(Disagreement, NamesTheInputs) {
  RankModel model(Mlp(), true);
  const Batch batch = OrdinaryBatch();
  const int64_t rows = Rank() == 1 ? 3 : 8;
  EXPECT_THAT(FirstError(model.graph, {Rows(batch.x, 0, rows), Rows(batch.y, 0, rows)}),
              HasSubstr("rank 1: graph @graph: the inputs: f32[3,12] i64[3], of rank 0 f32[8,12] "
                        "i64[8]"));
}

TEST(Disagreement, ShowsWhereGraphsDiffer) {
  RankModel model(
      Rank() == 1 ? Sequential(Linear(12, 10), Tanh()) : Sequential(Linear(12, 10), ReLU()), true);
  EXPECT_THAT(FirstError(model.graph, OwnPart(OrdinaryBatch())),
              AllOf(StartsWith("rank 1: "), HasSubstr("its graph has \""), HasSubstr("tanh"),
                    HasSubstr("that of rank 0 \""), HasSubstr("relu")));
}

TEST(Disagreement, OfOneThatCannotBuildIsItsError) {
  RankGraph graph;
  Linear layer(12, 10);
  graph.fn = [&layer](const Values& in) -> Values {
    const Value loss = cross_entropy(layer(Rank() == 1 ? reshape(in[0], {5, 5}) : in[0]), in[1]);
    loss.backward();
    return {loss};
  };
  graph.add_module("layer", layer);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 0.1}));
  graph.config.data_parallel();
  EXPECT_THAT(FirstError(graph, OwnPart(OrdinaryBatch())),
              AllOf(StartsWith("rank 1: "), HasSubstr("reshape")));
}

TEST(Options, AreChecked) {
  RankModel bytes(Mlp(), true, {.bucket_bytes = 0});
  EXPECT_THAT(FirstError(bytes.graph, OwnPart(OrdinaryBatch())), HasSubstr("bucket_bytes is 0"));
  RankModel wire(Mlp(), true, {.wire_dtype = DType::kI64});
  EXPECT_THAT(FirstError(wire.graph, OwnPart(OrdinaryBatch())), HasSubstr("wire is i64"));
}

class Checkpoint : public RankFolder {};

TEST_F(Checkpoint, IsWrittenOnceAndLoadedByAll) {
  const std::string path = (folder_ / "state").string();
  RankModel model(Mlp(), true);
  for (int step = 0; step < 3; ++step) Call(model.graph, OwnPart(OrdinaryBatch(step)));
  ASSERT_TRUE(model.graph.save_checkpoint(path, {{"step", "3"}}).ok());
  // No version before: nobody wrote a second time.
  EXPECT_FALSE(std::filesystem::exists(path + ".previous"));
  Call(model.graph, OwnPart(OrdinaryBatch(3)));
  RankModel resumed(Mlp(), true);
  const auto report = resumed.graph.load_checkpoint(path);
  ASSERT_TRUE(report.ok()) << report.status();
  Call(resumed.graph, OwnPart(OrdinaryBatch(3)));
  ExpectSameBits(resumed.State(), model.State());
}

TEST_F(Checkpoint, ThatIsMissingOnOneRankIsItsError) {
  const std::string path = (folder_ / "state").string();
  RankModel model(Mlp(), true);
  Call(model.graph, OwnPart(OrdinaryBatch()));
  ASSERT_TRUE(model.graph.save_checkpoint(path).ok());
  const absl::Status loaded =
      model.graph.load_checkpoint(Rank() == 1 ? path + ".gone" : path).status();
  EXPECT_TRUE(absl::IsNotFound(loaded)) << loaded;
  EXPECT_THAT(Message(loaded), AllOf(StartsWith("rank 1: "), HasSubstr("state.gone")));
}

TEST_F(Checkpoint, ThatCannotBeWrittenIsAnErrorOfAll) {
  RankModel model(Mlp(), true);
  Call(model.graph, OwnPart(OrdinaryBatch()));
  const absl::Status saved = model.graph.save_checkpoint((folder_ / "none" / "state").string());
  EXPECT_TRUE(absl::IsNotFound(saved)) << saved;
  EXPECT_THAT(Message(saved), StartsWith("rank 0: "));
}

}  // namespace
}  // namespace halftone::nn
