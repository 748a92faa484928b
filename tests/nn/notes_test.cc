// Notes of a graph: what works and yet is hardly meant is said once.
#include "halftone/graph/nn/notes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

#include "halftone/kernels/kernel.h"
#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::MatchesRegex;
using testing::RandomTensor;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

// A linear layer; what build() returns besides is up to the test.
class NotedModel : public FnGraph {
 public:
  explicit NotedModel(bool with_optimizer = true)
      : FnGraph([this](const Values& in) -> Values {
          const Value loss = mean(fc(in[0]));
          loss.backward();
          return {loss};
        }),
        fc(3, 2) {
    add_module("fc", fc);
    if (with_optimizer) add_optimizer(optim::SGD(parameters()));
  }
  Linear fc;
};

const Tensor kTwoRows = F32({2, 3}, {1, 2, 3, 4, 5, 6});

class GraphNotes : public ::testing::Test {
 protected:
  void SetUp() override { Notes::ForgetPrinted(); }
};

TEST_F(GraphNotes, BackwardThatNothingFollows) {
  NotedModel model(/*with_optimizer=*/false);
  Call(model, {kTwoRows});
  EXPECT_THAT(model.notes(),
              ElementsAre(MatchesRegex(
                  "notes_test.cc:[0-9]+: backward\\(\\) has no effect: "
                  "the graph has no optimizer and reads no gradient; "
                  "add_optimizer trains it, and nn::gradients\\(loss, \\{w\\}\\) gives "
                  "gradients as values")));

  NotedModel trained;
  Call(trained, {kTwoRows});
  EXPECT_THAT(trained.notes(), IsEmpty());
  NotedModel evaluated(/*with_optimizer=*/false);
  evaluated.eval();
  Call(evaluated, {kTwoRows});
  EXPECT_THAT(evaluated.notes(), IsEmpty());
  NotedModel read(/*with_optimizer=*/false);
  read.fn = [&read](const Values& in) -> Values {
    const Value loss = mean(read.fc(in[0]));
    loss.backward();
    return gradients(loss, {read.fc.weight});
  };
  Call(read, {kTwoRows});
  EXPECT_THAT(read.notes(), IsEmpty());
}

TEST_F(GraphNotes, F13AnInputInF64NamesDtypeAndConsequence) {
  NotedModel model(/*with_optimizer=*/false);
  model.fn = [](const Values& in) -> Values { return {sum(exp(in[0])), sum(in[1])}; };
  model.config.enable_amp(true, {.dtype = DType::kBF16});
  Call(model, {Tensor::Full(DType::kF64, {2, 3}, 1), kTwoRows});
  EXPECT_THAT(model.notes(),
              ElementsAre("input 0 is f64[2,3]: 2 of 3 kernels compute in f64, "
                          "on reference kernels, which are slow, "
                          "and mixed precision leaves them alone; "
                          "convert it to f32 (in Python x.astype(numpy.float32)) unless f64 "
                          "is meant"));

  // Read as f32 at once, or no number that is computed with.
  NotedModel cast_first(/*with_optimizer=*/false);
  cast_first.fn = [](const Values& in) -> Values { return {sum(exp(cast(in[0], DType::kF32)))}; };
  Call(cast_first, {Tensor::Full(DType::kF64, {2, 3}, 1)});
  EXPECT_THAT(cast_first.notes(), IsEmpty());
}

TEST_F(GraphNotes, EveryCallCompilesAnew) {
  FnGraph graph([](const Values& in) -> Values { return {relu(in[0])}; });
  graph.config.cache_size = 2;
  for (int64_t n = 1; n <= 9; ++n) Call(graph, {Tensor::Zeros(DType::kF32, {n})});
  EXPECT_THAT(graph.notes(), IsEmpty()) << "seven steps were dropped";
  for (int64_t n = 10; n <= 20; ++n) Call(graph, {Tensor::Zeros(DType::kF32, {n})});
  EXPECT_THAT(graph.notes(),
              ElementsAre("8 calls compiled anew, each dropping one of the 2 compiled steps "
                          "that are kept, now for (f32[10]); "
                          "compiling costs as much as many steps: pad inputs to a few shapes, "
                          "or raise config.cache_size"));

  // Each shape twice: half the calls find their step.
  FnGraph twice(graph.fn);
  twice.config.cache_size = 1;
  for (int64_t n = 1; n <= 40; ++n) Call(twice, {Tensor::Zeros(DType::kF32, {n / 2})});
  EXPECT_THAT(twice.notes(), IsEmpty());
}

TEST_F(GraphNotes, AmpThatLowersNothing) {
  NotedModel model;
  model.config.enable_amp(true, {.dtype = DType::kBF16, .deny = {"linear"}});
  Call(model, {kTwoRows});
  EXPECT_THAT(model.notes(), ElementsAre(MatchesRegex("amp: no node runs in bf16, "
                                                      "of [0-9] that compute with floats; "
                                                      "fc/linear: .*deny linear.*; "
                                                      "amp_table\\(\\) has the reason of each")));
  NotedModel lowered;
  lowered.config.enable_amp(true, {.dtype = DType::kBF16, .trim = false});
  Call(lowered, {kTwoRows});
  EXPECT_THAT(lowered.notes(), IsEmpty());
}

bool HasWidenedKernels(const ir::Graph& graph) {
  return std::any_of(graph.nodes().begin(), graph.nodes().end(), [](const auto& node) {
    const auto kernel = kernels::KernelRegistry::Global().Select(*node, Device::Kind::kCpu);
    return kernel.ok() && std::string((*kernel)->name()).rfind("cpu:widened:", 0) == 0;
  });
}

// Copies of weights in 16 bit, which live beside the arena.
size_t BytesOfKeptCasts(const ir::Graph& graph) {
  size_t bytes = 0;
  for (const auto& node : graph.nodes()) {
    if (node->op().name != "cast" || !node->attrs().GetBool("kept")) continue;
    bytes += static_cast<size_t>(node->output_type().num_bytes());
  }
  return bytes;
}

// A product with many rows of output, as the last layer of a language model.
TEST_F(GraphNotes, F20WidenedF16ThatTakesMoreMemorySaysSo) {
  constexpr int64_t kTokens = 512, kWidth = 64, kWords = 2048;
  size_t memory[2];
  std::vector<std::string> notes[2];
  bool widened = false;
  for (const bool low : {false, true}) {
    Linear fc(kWidth, kWords, false);
    FnGraph graph([&fc](const Values& in) -> Values {
      const Value loss = cross_entropy(fc(in[0]), in[1]);
      loss.backward();
      return {loss};
    });
    graph.add_module("fc", fc);
    graph.add_optimizer(optim::SGD(graph.parameters()));
    if (low) graph.config.enable_amp(true, {.dtype = DType::kF16});
    Call(graph,
         {RandomTensor(DType::kF32, {kTokens, kWidth}, 1), Tensor::Zeros(DType::kI64, {kTokens})});
    memory[low] = graph.arena_bytes() + BytesOfKeptCasts(*graph.compiled_graph());
    notes[low] = graph.notes();
    widened = HasWidenedKernels(*graph.compiled_graph());
  }
  EXPECT_THAT(notes[false], IsEmpty());
  // Beside the note on the scaler that was added.
  if (!widened || memory[true] <= memory[false]) {
    EXPECT_EQ(notes[true].size(), 1u);
  } else {
    EXPECT_EQ(notes[true].size(), 2u);
    EXPECT_THAT(notes[true],
                ::testing::Contains(MatchesRegex(
                    "amp: the step takes [0-9.]+ MiB of working memory and 16-bit "
                    "weights, in f32 about [0-9.]+ MiB: [0-9]+ kernels compute in f32 here "
                    "and hold f32 copies of their 16-bit operands; "
                    "f32 is the better choice on this device")));
  }
}

TEST_F(GraphNotes, OneOfEachKindOnStandardErrorAndAllWithDebug) {
  const auto run = [](int debug) {
    NotedModel model(/*with_optimizer=*/false);
    model.debug(debug);
    CaptureStderr();
    Call(model, {kTwoRows});
    Call(model, {F32({1, 3}, {1, 2, 3})});
    EXPECT_EQ(model.notes().size(), 1u);
    return GetCapturedStderr();
  };
  EXPECT_THAT(run(0), MatchesRegex("halftone: note: graph @graph: notes_test.cc:[0-9]+: "
                                   "backward\\(\\) has no effect.*\n"));
  EXPECT_EQ(run(0), "");
  EXPECT_THAT(run(1), HasSubstr("halftone: note: graph @graph: notes_test.cc:"));

  Notes::ForgetPrinted();
  setenv("HALFTONE_NOTES", "0", 1);
  const std::string silent = run(0);
  unsetenv("HALFTONE_NOTES");
  EXPECT_EQ(silent, "");
}

}  // namespace
}  // namespace halftone::nn
