// Embeddings with sparse = true: the rows that a step uses are updated, by the values of a dense
// update, of the optimizer's formula and of PyTorch; and what a sparse table meets on its way.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "halftone/tests/nn/fn_graph.h"
#include "halftone/tests/support/temp_dir.h"
#include "halftone/tests/support/tensors.h"

namespace halftone::nn {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Doubles = std::vector<double>;

const Tensor kTable = F32({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});

// The loss sum(table[ids] * c), so that row ids[i] has the gradient c[i].
struct Tables : FnGraph {
  explicit Tables(EmbeddingOptions options = {.sparse = true}, const Tensor& start = kTable)
      : table(start.shape()[0], start.shape()[1], options) {
    fn = [this](const Values& in) -> Values {
      const Value loss = sum(table(in[0]) * in[1]);
      loss.backward();
      return {loss};
    };
    add_module("table", table);
    HT_CHECK(table.weight.set_value(start).ok());
  }
  absl::Status Step(const std::vector<int64_t>& ids, const Doubles& c) {
    const auto n = static_cast<int64_t>(ids.size());
    const Tensor of_ids = Tensor::Of(DType::kI64, {n}, Doubles(ids.begin(), ids.end()));
    return CallStatus(*this, {of_ids, Tensor::Of(DType::kF32, {n, table.weight.shape()[1]}, c)});
  }
  Doubles State(const std::string& name) {
    const absl::StatusOr<StateDict> state = state_dict();
    return state.ok() && state->count(name) == 1 ? state->at(name).ToVector() : Doubles();
  }
  Doubles Weights() const { return table.weight.value().ToVector(); }

  Embedding table;
};

// Three steps with the gradients of the tests of PyTorch below: duplicates, and a row, 3, that no
// step uses.
void ThreeSteps(Tables& tables) {
  const std::vector<std::vector<int64_t>> ids = {{2, 0, 2}, {0, 1, 0}, {2, 1, 1}};
  for (int s = 1; s <= 3; ++s) {
    Doubles c = {1, -2, 0.5, 0.25, 3, 1};
    for (double& x : c) x *= s;
    ASSERT_TRUE(tables.Step(ids[static_cast<size_t>(s - 1)], c).ok());
  }
}

void ExpectRows(const Doubles& got, const Doubles& want, double error = 2e-6) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(got[i], want[i], error * std::max(1.0, std::abs(want[i]))) << i;
  }
}

// Where a row without gradient stays in a dense update, the results are the same, bit for bit.
template <typename O>
void ExpectLikeDense(const typename O::Options& options) {
  Tables sparse, dense(EmbeddingOptions{});
  for (Tables* tables : {&sparse, &dense}) {
    tables->add_optimizer(O(tables->parameters(), options));
    ThreeSteps(*tables);
  }
  const StateDict got = *sparse.state_dict(), want = *dense.state_dict();
  ASSERT_EQ(got.size(), want.size());
  for (const auto& [name, value] : want) {
    EXPECT_TRUE(BitEqual(got.at(name), value)) << name;
  }
}

TEST(SparseEmbedding, SgdIsTheDenseUpdate) {
  ExpectLikeDense<optim::SGD>({.lr = 0.1});
  ExpectLikeDense<optim::SGD>({.lr = 0.1, .clip_norm = 2, .clip_value = 0.75});
}

TEST(SparseEmbedding, AdagradIsTheDenseUpdate) {
  ExpectLikeDense<optim::Adagrad>({.lr = 0.1});
  ExpectLikeDense<optim::Adagrad>(
      {.lr = 0.1, .lr_decay = 0.5, .initial_accumulator_value = 2, .eps = 0.5, .clip_norm = 1});
}

// Moments of a row move when the row is used; the correction counts all steps.
TEST(SparseEmbedding, SparseAdamFollowsItsFormula) {
  constexpr int kRows = 7, kWidth = 3, kIds = 5;
  Doubles w(kRows * kWidth), m(w.size()), v(w.size());
  for (size_t i = 0; i < w.size(); ++i) w[i] = 0.25 * static_cast<double>(i % 5) - 0.5;
  Tables tables({.sparse = true}, Tensor::Of(DType::kF32, {kRows, kWidth}, w));
  const optim::SparseAdamOptions o{.lr = 0.1, .betas = {0.8, 0.95}, .eps = 0.5};
  tables.add_optimizer(optim::SparseAdam(tables.parameters(), o));
  for (int step = 1; step <= 20; ++step) {
    std::vector<int64_t> ids;
    Doubles c;
    Doubles gradient(w.size());
    for (int i = 0; i < kIds; ++i) {
      ids.push_back((step * 3 + i * i) % (kRows - 1));  // row 6 never
      for (int j = 0; j < kWidth; ++j) {
        c.push_back(static_cast<float>(std::sin(step + 2 * i + 5 * j)));
        gradient[static_cast<size_t>(ids.back() * kWidth + j)] += c.back();
      }
    }
    ASSERT_TRUE(tables.Step(ids, c).ok());
    const double bias1 = 1 - std::pow(0.8, step), bias2 = 1 - std::pow(0.95, step);
    for (const int64_t row : std::set<int64_t>(ids.begin(), ids.end())) {
      for (int64_t i = row * kWidth; i < (row + 1) * kWidth; ++i) {
        const auto at = static_cast<size_t>(i);
        m[at] += 0.2 * (gradient[at] - m[at]);
        v[at] = 0.95 * v[at] + 0.05 * gradient[at] * gradient[at];
        w[at] -= 0.1 * std::sqrt(bias2) / bias1 * m[at] / (std::sqrt(v[at]) + 0.5);
      }
    }
  }
  ExpectRows(tables.Weights(), w, 1e-5);
  ExpectRows(tables.State("optimizer0.table.weight.exp_avg"), m, 1e-5);
  ExpectRows(tables.State("optimizer0.table.weight.exp_avg_sq"), v, 1e-5);
}

TEST(SparseEmbedding, SparseAdamsDefaultsArePyTorchs) {
  const optim::SparseAdamOptions o;
  EXPECT_EQ(o.lr, 1e-3);
  EXPECT_THAT(o.betas, ElementsAre(0.9, 0.999));
  EXPECT_EQ(o.eps, 1e-8);
}

// What torch 2.15.0 gives with sparse=True and torch.optim's optimizers of these names, of the same
// three steps.
template <typename O>
void ExpectAsPyTorch(const typename O::Options& options, const Doubles& weights,
                     const std::map<std::string, Doubles>& states = {}) {
  Tables tables;
  tables.add_optimizer(O(tables.parameters(), options));
  ThreeSteps(tables);
  ExpectRows(tables.Weights(), weights);
  for (const auto& [name, values] : states) {
    ExpectRows(tables.State("optimizer0.table.weight." + name), values);
  }
}

TEST(SparseEmbedding, GivesWhatPyTorchGives) {
  ExpectAsPyTorch<optim::SGD>(
      {.lr = 0.1}, {0.149999991, 2.17499995, 1.85000002, 3.57500005, 4.29999971, 6.69999981, 7, 8});
  ExpectAsPyTorch<optim::Adagrad>(
      {.lr = 0.1}, {0.80019474, 1.99922776, 2.80045056, 3.80087733, 4.84000015, 6.19863939, 7, 8},
      {{"sum", {64.25, 4.0625, 111.25, 14.3125, 25, 37, 0, 0}}});
  ExpectAsPyTorch<optim::Adagrad>(
      {.lr = 0.1, .lr_decay = 0.5, .initial_accumulator_value = 2, .eps = 0.5},
      {0.913267434, 2.03209901, 2.92301273, 3.94202352, 4.88932562, 6.08927917, 7, 8},
      {{"sum", {66.25, 6.0625, 113.25, 16.3125, 27, 39, 2, 2}}});
  ExpectAsPyTorch<optim::SparseAdam>(
      {.lr = 0.1}, {0.821553588, 1.96553278, 2.85654163, 3.85466623, 4.81564951, 6.17246485, 7, 8},
      {{"exp_avg",
        {0.845000029, -0.17750001, 1.13999999, 0.420000017, 0.659999967, -0.690000057, 0, 0}},
       {"exp_avg_sq",
        {0.0642497465, 0.00406243792, 0.111249007, 0.0143122505, 0.0249840021, 0.0369990021, 0,
         0}}});
  ExpectAsPyTorch<optim::SparseAdam>(
      {.lr = 0.1, .betas = {0.8, 0.95}, .eps = 0.5},
      {0.91815412, 2.02279449, 2.91482997, 3.93808675, 4.87588072, 6.08751059, 7, 8},
      {{"exp_avg",
        {1.68000007, -0.359999985, 2.26000023, 0.830000043, 1.24000001, -1.36000013, 0, 0}},
       {"exp_avg_sq",
        {3.21187496, 0.202968746, 5.55999994, 0.715000033, 1.21000004, 1.84749997, 0, 0}}});
}

// The gradient of a row is 8, in bf16: there a sum of 8s would stop at 2048.
TEST(SparseEmbedding, DuplicatesAddInF32AlsoUnderAmp) {
  Tables tables({.sparse = true}, F32({2, 1}, {0, 0}));
  tables.fn = [&](const Values& in) -> Values {
    const Value loss = sum(matmul(tables.table(in[0]), in[1]));
    loss.backward();
    return {loss};
  };
  tables.config.enable_amp(true, {.dtype = DType::kBF16});
  tables.add_optimizer(optim::SGD(tables.parameters(), {.lr = 1}));
  Call(tables, {Tensor::Full(DType::kI64, {4099}, 1), Tensor::Full(DType::kF32, {1, 8}, 1)});
  EXPECT_THAT(tables.Weights(), ElementsAre(0, -8 * 4099));
  int low = 0;
  for (const auto& node : tables.compiled_graph()->nodes()) {
    low += node->op().name == "matmul" && node->output_type().dtype == DType::kBF16 ? 1 : 0;
  }
  EXPECT_EQ(low, 1) << "the product";
}

TEST(SparseEmbedding, ThePaddingRowStays) {
  Tables tables({.padding_idx = 2, .sparse = true});
  tables.add_optimizer(optim::SGD(tables.parameters(), {.lr = 1}));
  ASSERT_TRUE(tables.Step({2, 1, 2, 1}, {1, 1, 2, 2, 4, 4, 8, 8}).ok());
  EXPECT_THAT(tables.Weights(), ElementsAre(1, 2, -7, -6, 5, 6, 7, 8));
}

TEST(SparseEmbedding, NormIsOfTheSummedRows) {
  Tables tables;
  OptimizerHandle optimizer =
      tables.add_optimizer(optim::SGD(tables.parameters(), {.lr = 1, .clip_norm = 1}));
  // Row 1 has 1 + 2 and 0, row 3 has 0 and 4: a norm of 5, clipped to 1.
  ASSERT_TRUE(tables.Step({1, 3, 1}, {1, 0, 0, 4, 2, 0}).ok());
  EXPECT_NEAR(optimizer.grad_norm(), 5, 1e-6);
  ExpectRows(tables.Weights(), {1, 2, 3 - 0.6, 4, 5, 6, 7, 8 - 0.8});
}

// A skipped step leaves table and moments as they are, also the rows that it used.
TEST(SparseEmbedding, SkippedStepsLeaveEverything) {
  Tables tables;
  tables.add_optimizer(optim::SparseAdam(tables.parameters(), {.lr = 0.1}));
  ScalerHandle scaler = tables.set_grad_scaler(amp::GradScaler({.init_scale = 1024}));
  ASSERT_TRUE(tables.Step({0, 3}, {1, 2, 3, 4}).ok());
  const StateDict before = *tables.state_dict();
  const double inf = std::numeric_limits<double>::infinity();
  ASSERT_TRUE(tables.Step({1, 3, 1}, {inf, 1, 1, 1, 1, 1}).ok());
  EXPECT_TRUE(tables.last_step_skipped());
  EXPECT_EQ(scaler.scale(), 512);
  const StateDict after = *tables.state_dict();
  for (const auto& [name, value] : before) {
    if (name.find("table") == std::string::npos && name != "optimizer0.applied_steps") continue;
    EXPECT_TRUE(BitEqual(after.at(name), value)) << name;
  }
  ASSERT_TRUE(tables.Step({1, 3, 1}, {1, 1, 1, 1, 1, 1}).ok());
  EXPECT_FALSE(tables.last_step_skipped());
}

// A scale that is a power of two changes no bit of the result.
TEST(SparseEmbedding, IsUnscaled) {
  Tables plain, scaled;
  scaled.set_grad_scaler(amp::GradScaler({.init_scale = 4096}));
  for (Tables* tables : {&plain, &scaled}) {
    tables->add_optimizer(optim::Adagrad(tables->parameters(), {.lr = 0.1}));
    ThreeSteps(*tables);
  }
  EXPECT_EQ(plain.Weights(), scaled.Weights());
}

// Two uses of one table: their rows are summed, here row 1 of both.
TEST(SparseEmbedding, UsedTwice) {
  for (const bool wide : {false, true}) {
    Tables tables;
    tables.fn = [&](const Values& in) -> Values {
      const Value loss = sum(tables.table(in[0]) * 2) + sum(tables.table(in[1]) * in[2]);
      loss.backward();
      return {loss};
    };
    tables.add_optimizer(optim::SGD(tables.parameters(), {.lr = 1, .clip_norm = 1e9}));
    const Tensor second = Tensor::Of(wide ? DType::kI64 : DType::kI32, {1, 2}, {1, 3});
    Call(tables, {I64({2}, {1, 0}), second, F32({1, 2, 2}, {10, 20, 30, 40})});
    EXPECT_THAT(tables.Weights(), ElementsAre(-1, 0, 3 - 12, 4 - 22, 5, 6, 7 - 30, 8 - 40));
    EXPECT_THAT(tables.notes(), IsEmpty());
  }
}

TEST(SparseEmbedding, TwoLosses) {
  Tables tables;
  tables.fn = [&](const Values& in) -> Values {
    const Value first = sum(tables.table(in[0])), second = sum(tables.table(in[0]) * in[1]);
    first.backward();
    second.backward();
    return {first, second};
  };
  tables.add_optimizer(optim::SGD(tables.parameters(), {.lr = 1}));
  Call(tables, {I64({2}, {1, 1}), F32({2, 2}, {1, 2, 3, 4})});
  EXPECT_THAT(tables.Weights(), ElementsAre(1, 2, 3 - 2 - 4, 4 - 2 - 6, 5, 6, 7, 8));
}

constexpr char kDenseNote[] =
    "optimizer0: the gradient of \"table.weight\" is dense although an embedding of it is sparse: "
    "the table is used otherwise too, with another padding_idx, or under losses with different "
    "scalers";

// A tied weight, used densely too: its gradient is dense, as in PyTorch.
Values TiedTables(Tables& tables, const Values& in) {
  const Value rows = tables.table(in[0]);
  const Value loss = sum(matmul(rows, transpose(tables.table.weight, 0, 1)) * in[1]);
  loss.backward();
  return {loss};
}

TEST(SparseEmbedding, TiedWeightsAreDense) {
  Tables sparse, dense(EmbeddingOptions{});
  for (Tables* tables : {&sparse, &dense}) {
    tables->fn = [tables](const Values& in) { return TiedTables(*tables, in); };
    tables->add_optimizer(optim::Adam(tables->parameters(), {.lr = 0.1}));
    Call(*tables, {I64({2}, {1, 2}), F32({2, 4}, {1, -2, 3, 4, 5, 6, -7, 8})});
  }
  EXPECT_EQ(sparse.Weights(), dense.Weights());
  EXPECT_THAT(sparse.notes(), Contains(HasSubstr(kDenseNote)));
  Tables lazy;
  lazy.fn = [&lazy](const Values& in) { return TiedTables(lazy, in); };
  lazy.add_optimizer(optim::SparseAdam(lazy.parameters()));
  EXPECT_THAT(
      Message(CallStatus(lazy, {I64({1}, {1}), F32({1, 4}, {1, 1, 1, 1})})),
      HasSubstr("optimizer0: the gradient of \"table.weight\" is dense; sparse_adam expects "
                "that of a table which is used by embeddings with sparse = true alone"));
}

TEST(SparseEmbedding, PaddingThatDiffersIsDense) {
  Tables tables;
  tables.fn = [&](const Values& in) -> Values {
    const Value weight = tables.table.weight;
    const Value loss =
        sum(embedding(in[0], weight, 1, true)) + sum(embedding(in[0], weight, -1, true));
    loss.backward();
    return {loss};
  };
  tables.add_optimizer(optim::SGD(tables.parameters(), {.lr = 1}));
  Call(tables, {I64({2}, {0, 1})});
  EXPECT_THAT(tables.Weights(), ElementsAre(1 - 2, 2 - 2, 3 - 1, 4 - 1, 5, 6, 7, 8));
  EXPECT_THAT(tables.notes(), Contains(HasSubstr(kDenseNote)));
}

// 2^60 times the weight, whose gradient is a sum of sums: dense, and found so at once.
TEST(SparseEmbedding, OfASumIsDense) {
  Tables tables;
  tables.fn = [&](const Values& in) -> Values {
    Value weight = tables.table.weight;
    for (int i = 0; i < 60; ++i) weight = weight + weight;
    const Value loss = sum(embedding(in[0], weight, -1, true)) * 0x1p-60;
    loss.backward();
    return {loss};
  };
  tables.add_optimizer(optim::SGD(tables.parameters(), {.lr = 1}));
  Call(tables, {I64({1}, {2})});
  EXPECT_THAT(tables.Weights(), ElementsAre(1, 2, 3, 4, 4, 5, 7, 8));
  EXPECT_THAT(tables.notes(), Contains(HasSubstr(kDenseNote)));
}

TEST(SparseEmbedding, UnderSeveralScalersIsDense) {
  Tables tables;
  const ScalerHandle first = tables.add_scaler(amp::GradScaler({.init_scale = 8}));
  const ScalerHandle second = tables.add_scaler(amp::GradScaler({.init_scale = 4}));
  tables.fn = [&](const Values& in) -> Values {
    const Value of_a = sum(tables.table(in[0])), of_b = sum(tables.table(in[0]) * 3);
    of_a.backward({.scaler = first});
    of_b.backward({.scaler = second});
    return {of_a, of_b};
  };
  tables.add_optimizer(optim::SGD(tables.parameters(), {.lr = 1}));
  Call(tables, {I64({2}, {0, 1})});
  EXPECT_THAT(tables.Weights(), ElementsAre(1 - 4, 2 - 4, 3 - 4, 4 - 4, 5, 6, 7, 8));
  EXPECT_THAT(tables.notes(), Contains(HasSubstr(kDenseNote)));
}

template <typename O>
std::string RefusalOf(const typename O::Options& options) {
  Tables tables;
  tables.add_optimizer(O(tables.parameters(), options));
  return Message(tables.Step({1}, {1, 1}));
}

TEST(SparseEmbedding, OptimizersThatChangeEveryRowAreErrors) {
  const std::string expected =
      " as it is set changes every row in each step; expected sgd without momentum and "
      "weight_decay, sparse_adam or adagrad without weight_decay, or sparse = false";
  const std::string table =
      "optimizer0: \"table.weight\" is the table of an embedding with sparse = true, and ";
  EXPECT_THAT(RefusalOf<optim::Adam>({}), HasSubstr(table + "adam" + expected));
  EXPECT_THAT(RefusalOf<optim::AdamW>({}), HasSubstr(table + "adamw" + expected));
  EXPECT_THAT(RefusalOf<optim::SGD>({.momentum = 0.9}), HasSubstr(table + "sgd" + expected));
  EXPECT_THAT(RefusalOf<optim::SGD>({.weight_decay = 0.1}), HasSubstr(table + "sgd" + expected));
  EXPECT_THAT(RefusalOf<optim::Adagrad>({.weight_decay = 0.1}),
              HasSubstr(table + "adagrad" + expected));
  EXPECT_THAT(RefusalOf<optim::LAMB>({}), HasSubstr(table + "lamb" + expected));
}

TEST(SparseEmbedding, SparseAdamOfADenseParameterIsAnError) {
  Tables tables(EmbeddingOptions{});
  tables.add_optimizer(optim::SparseAdam(tables.parameters()));
  EXPECT_THAT(Message(tables.Step({1}, {1, 1})), HasSubstr("is dense; sparse_adam expects"));
}

// The average is of all rows: those that no step uses stay at what they are.
TEST(SparseEmbedding, HasAMovingAverage) {
  Tables sparse, dense(EmbeddingOptions{});
  for (Tables* tables : {&sparse, &dense}) {
    tables->add_optimizer(
        optim::SGD(tables->parameters(), {.lr = 0.1, .ema = optim::Ema{.decay = 0.75}}));
    ThreeSteps(*tables);
  }
  const Doubles average = sparse.State("optimizer0.table.weight.ema");
  EXPECT_EQ(average, dense.State("optimizer0.table.weight.ema"));
  ASSERT_EQ(average.size(), 8u);
  EXPECT_EQ(average[6], 7);
}

TEST(SparseEmbedding, ResumesFromACheckpoint) {
  const testing::TempDir dir;
  Tables first, second({.sparse = true}, F32({4, 2}, {0, 0, 0, 0, 0, 0, 0, 0}));
  for (Tables* tables : {&first, &second}) {
    tables->add_optimizer(optim::SparseAdam(tables->parameters(), {.lr = 0.1}));
  }
  ThreeSteps(first);
  ASSERT_TRUE(first.save_checkpoint(dir.Path("c")).ok());
  ASSERT_TRUE(second.load_checkpoint(dir.Path("c")).ok());
  ThreeSteps(first);
  ThreeSteps(second);
  EXPECT_EQ(first.Weights(), second.Weights());
  EXPECT_EQ(first.State("optimizer0.table.weight.exp_avg_sq"),
            second.State("optimizer0.table.weight.exp_avg_sq"));
}

TEST(SparseEmbedding, InF64) {
  Parameter weight(Shape{3, 2}, {ir::Initializer::Kind::kConstant, 0.5, 0}, DType::kF64);
  FnGraph graph([&](const Values& in) -> Values {
    const Value loss = sum(embedding(in[0], weight, -1, /*sparse=*/true) * in[1]);
    loss.backward();
    return {loss};
  });
  graph.add_parameter("w", weight);
  graph.add_optimizer(optim::SGD(graph.parameters(), {.lr = 1}));
  Call(graph, {I64({2}, {2, 2}), Tensor::Of(DType::kF64, {2, 2}, {1, 2, 0x1p-40, 0x1p-41})});
  EXPECT_THAT(weight.value().ToVector(),
              ElementsAre(0.5, 0.5, 0.5, 0.5, -0.5 - 0x1p-40, -1.5 - 0x1p-41));
}

// A bad id is a fault of the step, which changes nothing.
TEST(SparseEmbedding, IdsOutOfRange) {
  Tables tables;
  tables.add_optimizer(optim::SGD(tables.parameters(), {.lr = 1}));
  EXPECT_THAT(Message(tables.Step({1, 4}, {1, 1, 1, 1})),
              HasSubstr("index 4 at [1] out of range; expected 0..3"));
  EXPECT_EQ(tables.Weights(), kTable.ToVector());
}

// No ids, and all of them the padding row.
TEST(SparseEmbedding, NoRows) {
  Tables tables({.padding_idx = 1, .sparse = true});
  tables.add_optimizer(optim::Adagrad(tables.parameters(), {.lr = 1}));
  ASSERT_TRUE(tables.Step({}, {}).ok());
  ASSERT_TRUE(tables.Step({1, 1}, {1, 1, 1, 1}).ok());
  EXPECT_EQ(tables.Weights(), kTable.ToVector());
}

}  // namespace
}  // namespace halftone::nn
