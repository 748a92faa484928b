// lstm, gru and their gradients.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

struct LayerSize {
  int64_t steps = 4, batch = 3, hidden = 5;
  int64_t features = 0;  // of h where the cells are projected
};

const ir::Attributes kReverse = {{"reverse", true}};

// f32 as it is; in 16 bit what is rounded the other way at one step moves all that later steps make
// of it, by up to 16 times the rounding of a small sum of theirs.
void AddEach(std::vector<OpCase>& cases, OpCase c) {
  c.dtypes = {DType::kF32};
  cases.push_back(c);
  c.dtypes = {DType::kF16, DType::kBF16};
  c.name += "_16_bit";
  c.slack.factor = 16;
  cases.push_back(c);
}

void AddLstm(std::vector<OpCase>& cases, const std::string& variant, const LayerSize& s,
             const ir::Attributes& attrs = {}) {
  const int64_t features = s.features > 0 ? s.features : s.hidden;
  const OpInput w = Reals({4 * s.hidden, features}, -0.7, 0.7);
  const OpInput c0 = Pinned(Reals({s.batch, s.hidden}));
  std::vector<OpInput> inputs = {Reals({s.steps, s.batch, 4 * s.hidden}, -2, 2), w,
                                 Reals({s.batch, features}), c0};
  // Any gates and cells, not only those that the forward op gives.
  std::vector<OpInput> grad = {Reals({s.steps, s.batch, 4 * s.hidden}, 0.1, 0.9),
                               w,
                               c0,
                               Pinned(Reals({s.steps, s.batch, s.hidden})),
                               Reals({s.steps, s.batch, features}),
                               Pinned(Reals({s.batch, s.hidden}))};
  if (s.features > 0) {
    inputs.push_back(Reals({features, s.hidden}));
    grad.push_back(Reals({features, s.hidden}));
  }
  OpCase c = Case("lstm", variant, inputs, attrs);
  c.gradient_outputs = {0, 1};
  c.gradient = s.batch > 0 && s.hidden < 17;
  AddEach(cases, c);
  AddEach(cases, NoGradient(Case("lstm_grad", variant, grad, attrs)));
}

void AddGru(std::vector<OpCase>& cases, const std::string& variant, const LayerSize& s,
            bool biased = true, const ir::Attributes& attrs = {}) {
  const OpInput w = Reals({3 * s.hidden, s.hidden}, -0.7, 0.7);
  const Shape state{s.batch, s.hidden}, states{s.steps, s.batch, s.hidden};
  const Shape gates{s.steps, s.batch, 3 * s.hidden};
  std::vector<OpInput> inputs = {Reals(gates, -2, 2), w, Reals(state)};
  if (biased) inputs.push_back(Pinned(Reals({3 * s.hidden})));
  OpCase c = Case("gru", variant, inputs, attrs);
  c.gradient_outputs = {0};
  c.gradient = s.batch > 0 && s.hidden < 17;
  AddEach(cases, c);
  AddEach(cases, NoGradient(Case("gru_grad", variant,
                                 {Reals(gates, 0.1, 0.9), w, Reals(state), Reals(states),
                                  Reals(states), Reals(states)},
                                 attrs)));
}

}  // namespace

void AddCases_recurrence(std::vector<OpCase>& cases) {
  AddLstm(cases, "plain", {});
  AddLstm(cases, "reverse", {}, kReverse);
  AddLstm(cases, "one_step", {.steps = 1});
  AddLstm(cases, "one_row", {.batch = 1});
  AddLstm(cases, "one_of_all", {.steps = 1, .batch = 1, .hidden = 1});
  AddLstm(cases, "no_rows", {.batch = 0});
  AddLstm(cases, "projected", {.features = 2});
  AddLstm(cases, "projected_reverse", {.features = 3}, kReverse);
  AddLstm(cases, "projected_one_step", {.steps = 1, .features = 4});
  // Over the edges of tiles, vectors and blocks of depth; the library's alignment on CUDA.
  AddLstm(cases, "rows", {.steps = 2, .batch = 49, .hidden = 17});
  AddLstm(cases, "deep", {.steps = 1, .batch = 1, .hidden = 100});
  AddLstm(cases, "deep_projected", {.steps = 1, .batch = 1, .hidden = 100, .features = 7});
  AddLstm(cases, "even", {.steps = 3, .batch = 8, .hidden = 8});
  AddLstm(cases, "even_projected", {.steps = 3, .batch = 8, .hidden = 8, .features = 4});
  AddGru(cases, "plain", {});
  AddGru(cases, "reverse", {}, true, kReverse);
  AddGru(cases, "no_bias", {}, false);
  AddGru(cases, "one_step", {.steps = 1}, false, kReverse);
  AddGru(cases, "one_row", {.batch = 1});
  AddGru(cases, "one_of_all", {.steps = 1, .batch = 1, .hidden = 1});
  AddGru(cases, "no_rows", {.batch = 0});
  AddGru(cases, "rows", {.steps = 2, .batch = 49, .hidden = 17});
  AddGru(cases, "deep", {.steps = 1, .batch = 1, .hidden = 100});
  AddGru(cases, "even", {.steps = 3, .batch = 8, .hidden = 8});
}

}  // namespace halftone::testing
