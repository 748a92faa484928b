// nn::RunLog: which numbers an entry has, and that nothing goes wrong for the training.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "halftone/core/alloc_counter.h"
#include "halftone/core/io/event.h"
#include "halftone/core/io/event_file.h"
#include "halftone/core/io/record_file.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/allocation_hook.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::nn {
namespace {

using halftone::testing::Bytes;
using halftone::testing::TempDir;
using ::testing::ElementsAre;
using ::testing::Pair;

struct LoggedEvent {
  int64_t step = 0;
  bool starts_session = false;
  std::map<std::string, float> numbers;
};

// Of a file but its first event, the version.
std::vector<LoggedEvent> EventsIn(const std::string& path) {
  const std::string file = Bytes(path);
  size_t at = 0;
  io::RecordReader reader([&](char* data, size_t bytes) -> absl::StatusOr<size_t> {
    const size_t given = std::min(bytes, file.size() - at);
    std::copy_n(file.data() + at, given, data);
    at += given;
    return given;
  });
  std::vector<LoggedEvent> events;
  while (true) {
    const auto payload = reader.Next();
    EXPECT_TRUE(payload.ok()) << payload.status();
    if (!payload.ok() || !payload->has_value()) break;
    io::Event event;
    EXPECT_TRUE(io::ParseEvent(**payload, event).ok());
    if (!event.file_version.empty()) continue;
    LoggedEvent logged{event.step, event.starts_session, {}};
    for (const auto& scalar : event.scalars) logged.numbers[std::string(scalar.tag)] = scalar.value;
    events.push_back(std::move(logged));
  }
  EXPECT_FALSE(reader.truncated());
  return events;
}

// loss = w x, so its gradient in w is x; halved rates; a scaler that starts at 8.
class LoggedProduct : public FnGraph {
 public:
  LoggedProduct() : FnGraph([](const Values&) { return Values(); }) {
    EXPECT_TRUE(w.set_value(Tensor::Of(DType::kF32, {1}, {2})).ok());
    add_parameter("w", w);
    optimizer =
        add_optimizer(optim::SGD(parameters(), {.lr = 0.5, .lr_schedule = optim::StepLR(1, 0.5)}));
    set_grad_scaler(amp::GradScaler({.init_scale = 8}));
    fn = [this](const Values& in) -> Values {
      const Value loss = sum(w * in[0]);
      loss.backward();
      return {loss};
    };
  }

  Parameter w{Shape{1}, ir::Initializer{}};
  OptimizerHandle optimizer;
};

const Tensor kThree = Tensor::Of(DType::kF32, {1}, {3});
const Tensor kInfinite = Tensor::Of(DType::kF32, {1}, {INFINITY});

TEST(RunLog, LogsWhatTheStepUsedAndWhatCameOfIt) {
  const TempDir dir;
  LoggedProduct graph;
  RunLog log(graph, dir.path());
  const std::string path = log.path();
  for (const Tensor& x : {kThree, kInfinite, kThree}) {
    const std::vector<Tensor> out = Call(graph, {x});
    log.add_step({{"train/loss", out[0]}, {"train/tenth", out[0], 0.1}, {"constant", 1.5}}, 4);
  }
  log.flush();
  EXPECT_TRUE(log.status().ok()) << log.status();
  std::vector<LoggedEvent> events = EventsIn(path);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_TRUE(events[0].starts_session);
  EXPECT_EQ(events[0].step, 1);
  for (size_t i = 2; i < 4; ++i) {
    EXPECT_GT(events[i].numbers["speed/images_per_second"], 0) << i;
    events[i].numbers.erase("speed/images_per_second");
  }
  // w is 2, then 2 - 0.5 * 3 = 0.5; the second step is skipped, so the rate stays where the first
  // has brought it.
  EXPECT_THAT(events[1].numbers,
              ElementsAre(Pair("constant", 1.5F), Pair("optimizer0/grad_norm", 3.0F),
                          Pair("optimizer0/learning_rate", 0.5F), Pair("scaler0/scale", 8.0F),
                          Pair("scaler0/skipped_steps", 0.0F), Pair("train/loss", 6.0F),
                          Pair("train/tenth", 0.6F)));
  EXPECT_THAT(events[2].numbers,
              ElementsAre(Pair("constant", 1.5F), Pair("optimizer0/grad_norm", INFINITY),
                          Pair("optimizer0/learning_rate", 0.25F), Pair("scaler0/scale", 4.0F),
                          Pair("scaler0/skipped_steps", 1.0F), Pair("train/loss", INFINITY),
                          Pair("train/tenth", INFINITY)));
  EXPECT_EQ(events[3].step, 3);
  EXPECT_EQ(events[3].numbers["optimizer0/learning_rate"], 0.25F);
  EXPECT_EQ(events[3].numbers["train/loss"], 1.5F);
}

TEST(RunLog, NamesGroupsAndLeavesOutWhatIsNotKnown) {
  const TempDir dir;
  Linear fc(1, 1);
  FnGraph graph([&fc](const Values& in) -> Values {
    const Value loss = sum(fc(in[0]));
    loss.backward();
    return {loss};
  });
  graph.add_module("fc", fc);
  const auto [bias, weight] = graph.split_parameters({"*.bias"});
  graph.add_optimizer(optim::SGD({{weight, {}}, {bias, {.lr = 0.125}}}, {.lr = 1}));
  RunLog log(graph, dir.path(), {.items = "tokens"});
  const std::string path = log.path();
  for (int i = 0; i < 2; ++i) {
    Call(graph, {F32({1, 1}, {1})});
    log.add_step({}, 10);
  }
  log.flush();
  const std::vector<LoggedEvent> events = EventsIn(path);
  ASSERT_EQ(events.size(), 3U);
  EXPECT_THAT(events[1].numbers, ElementsAre(Pair("optimizer0/learning_rate", 1.0F),
                                             Pair("optimizer0/learning_rate_1", 0.125F)));
  EXPECT_EQ(events[2].numbers.count("speed/tokens_per_second"), 1U);
}

TEST(RunLog, LogsEverySoManySteps) {
  const TempDir dir;
  LoggedProduct graph;
  RunLog log(graph, dir.path(), {.every = 3});
  const std::string path = log.path();
  for (int i = 0; i < 7; ++i) {
    Call(graph, {kThree});
    log.add_step({{"step", static_cast<double>(i)}}, 1);
  }
  log.add_scalar("test/accuracy", 0.75);
  log.flush();
  const std::vector<LoggedEvent> events = EventsIn(path);
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[1].step, 3);
  EXPECT_EQ(events[2].step, 6);
  EXPECT_EQ(events[3].step, 7);
  EXPECT_THAT(events[3].numbers, ElementsAre(Pair("test/accuracy", 0.75F)));
}

// What an earlier file has behind the checkpoint is void: the session starts at the next step.
TEST(RunLog, ContinuesBehindACheckpoint) {
  const TempDir dir;
  StateDict state;
  {
    LoggedProduct graph;
    RunLog log(graph, dir.path());
    for (int i = 0; i < 5; ++i) {
      Call(graph, {kThree});
      log.add_step({});
      if (i == 2) state = *graph.state_dict();
    }
  }
  LoggedProduct graph;
  ASSERT_TRUE(graph.load_state_dict(state).ok());
  RunLog log(graph, dir.path());
  Call(graph, {kThree});
  log.add_step({});
  log.flush();
  const auto files = io::ListEventFiles(dir.path());
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 2U);
  EXPECT_EQ(EventsIn((*files)[0]).back().step, 5);
  const std::vector<LoggedEvent> events = EventsIn((*files)[1]);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_TRUE(events[0].starts_session);
  EXPECT_EQ(events[0].step, 4);
  EXPECT_EQ(events[1].step, 4);
}

// A run that is resumed between a step and the evaluation after it: the step's entry stays.
TEST(RunLog, AnEvaluationFirstLeavesItsStepAlone) {
  const TempDir dir;
  LoggedProduct graph;
  Call(graph, {kThree});
  std::string path;
  {
    RunLog log(graph, dir.path());
    log.add_scalar("test/accuracy", 0.5);
    path = log.path();
  }
  const std::vector<LoggedEvent> events = EventsIn(path);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_TRUE(events[0].starts_session);
  EXPECT_EQ(events[0].step, 2);
  EXPECT_EQ(events[1].step, 1);
}

TEST(RunLog, AllocatesNothing) {
  if (!testing::AllocationHookInstalled()) GTEST_SKIP() << "this build does not count allocations";
  const TempDir dir;
  LoggedProduct graph;
  RunLog log(graph, dir.path());
  std::vector<Tensor> out = {Tensor::Zeros(DType::kF32, {})};
  const auto step = [&] {
    ASSERT_TRUE(graph.Run({kThree}, absl::MakeSpan(out)).ok());
    log.add_step({{"train/loss", out[0]}}, 4);
  };
  for (int i = 0; i < 2; ++i) step();
  const AllocationCounter counter;
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(counter.count(), 0);
}

TEST(RunLog, WritesNothingUnasked) {
  LoggedProduct graph;
  RunLog log(graph, "");
  RunLog none;
  for (RunLog* silent : {&log, &none}) {
    Call(graph, {kThree});
    silent->add_step({{"train/loss", 1.0}}, 4);
    silent->add_scalar("test/accuracy", 1);
    silent->skip_time();
    silent->flush();
    EXPECT_TRUE(silent->status().ok());
    EXPECT_EQ(silent->path(), "");
  }
}

TEST(RunLog, TellsOnceWhatGoesWrongAndLetsTheTrainingGoOn) {
  const TempDir dir;
  const std::string file = dir.Write("file", "");
  LoggedProduct graph;
  ::testing::internal::CaptureStderr();
  RunLog log(graph, file);
  for (int i = 0; i < 2; ++i) {
    Call(graph, {kThree});
    log.add_step({{"train/loss", 1.0}}, 4);
  }
  RunLog wrong(graph, dir.path(), {.every = 0});
  const std::string expected =
      "nothing is logged any more: " + file + ": cannot make the folder: Not a directory";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "halftone: note: run log: " + expected +
                "\nhalftone: note: run log: nothing is logged any more: every = 0; expected 1 or "
                "more\n");
  EXPECT_EQ(log.status().ToString(), "FAILED_PRECONDITION: " + expected);
  EXPECT_EQ(log.path(), "");
}

TEST(RunLog, LeavesOutWhatIsNoNumber) {
  const TempDir dir;
  LoggedProduct graph;
  RunLog log(graph, dir.path());
  const std::string path = log.path();
  Call(graph, {kThree});
  ::testing::internal::CaptureStderr();
  log.add_step({{"a", Tensor::Zeros(DType::kF32, {2})}, {"b", Tensor()}, {"c", 1.0}});
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "halftone: note: run log: a is left out: got f32[2]; expected one element\n");
  EXPECT_EQ(log.status().code(), absl::StatusCode::kInvalidArgument);
  log.flush();
  const std::vector<LoggedEvent> events = EventsIn(path);
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[1].numbers.count("a") + events[1].numbers.count("b"), 0U);
  EXPECT_EQ(events[1].numbers.count("c"), 1U);
}

}  // namespace
}  // namespace halftone::nn
