// scaled_dot_product_attention and its gradient.
#include <limits>

#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

struct AttentionSize {
  std::vector<int64_t> outer = {2};
  int64_t heads = 2, key_heads = 2;
  int64_t length = 5, keys = 7, columns = 4, v_columns = 3;
  Shape Of(int64_t head_count, int64_t rows, int64_t inner) const {
    std::vector<int64_t> dims = outer;
    if (heads > 0) dims.push_back(head_count);
    if (rows >= 0) dims.push_back(rows);
    if (inner >= 0) dims.push_back(inner);
    return Shape(dims);
  }
};

constexpr double kMinusInf = -std::numeric_limits<double>::infinity();

}  // namespace

void AddCases_attention(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const AttentionSize& s,
                       ir::Attributes attrs = {}, std::vector<OpInput> mask = {}) {
    if (!attrs.Has("scale")) attrs.Set("scale", 0.5);
    std::vector<OpInput> operands = {Reals(s.Of(s.heads, s.length, s.columns), -2, 2),
                                     Reals(s.Of(s.key_heads, s.keys, s.columns), -2, 2),
                                     Reals(s.Of(s.key_heads, s.keys, s.v_columns), -2, 2)};
    std::vector<OpInput> inputs = operands;
    inputs.insert(inputs.end(), mask.begin(), mask.end());
    OpCase c = Case("scaled_dot_product_attention", variant, inputs, attrs);
    // The stats too, where every row sees a key for certain; they are -inf otherwise.
    const bool sees_keys = s.keys > 0 && (mask.empty() || mask[0].differentiable);
    if (!sees_keys) c.gradient_outputs = {0};
    // Kernels that multiply by tiles or packs of 16-bit columns read weights and the gradient of scores in
    // that dtype: each term is off by at most a quarter of Epsilon of itself.
    const bool packed = s.columns % 8 == 0 && s.v_columns % 8 == 0;
    c.slack.of_largest_in_low = packed ? 0.5 : 0;
    // Differences take two runs an element; larger cases have the decomposition of the gradient.
    c.gradient = s.length * s.keys < 1000;
    cases.push_back(c);
    // Any y and stats, not only those that the forward op gives.
    const Shape y = s.Of(s.heads, s.length, s.v_columns);
    operands.push_back(Reals(y));
    const Shape rows = s.Of(s.heads, s.length, -1);
    std::vector<int64_t> stats = {2};
    stats.insert(stats.end(), rows.dims().begin(), rows.dims().end());
    operands.push_back(Pinned(Reals(Shape(stats), 1, 2)));
    operands.push_back(Reals(y));
    operands.insert(operands.end(), mask.begin(), mask.end());
    OpCase grad = Case("scaled_dot_product_attention_grad", variant, operands, attrs);
    grad.gradient = c.gradient;
    grad.slack = c.slack;
    cases.push_back(grad);
  };
  const ir::Attributes causal = {{"is_causal", true}};
  const ir::Attributes dropout = {{"dropout_p", 0.3}, {"seed", int64_t{-77}}};
  add("plain", {});
  add("one_head", {.outer = {}, .heads = 0, .key_heads = 0});
  add("no_batch", {.outer = {}, .heads = 3, .key_heads = 3});
  add("rank5", {.outer = {2, 3}});
  add("causal", {}, causal);
  add("causal_more_queries", {.length = 9, .keys = 4}, causal);
  add("groups", {.heads = 6, .key_heads = 2});
  add("one_key_head", {.heads = 4, .key_heads = 1}, causal);
  add("one_key", {.keys = 1});
  add("one_query", {.length = 1, .keys = 70, .columns = 16, .v_columns = 32});
  add("no_batch_elements", {.outer = {0}});
  add("no_keys", {.keys = 0});
  add("no_columns", {.columns = 0});
  add("negative_scale", {}, {{"scale", -0.7}});
  add("dropout", {}, dropout);
  add("dropout_causal_groups", {.heads = 4, .key_heads = 2, .length = 11, .keys = 13},
      {{"dropout_p", 0.5}, {"seed", int64_t{5}}, {"is_causal", true}});
  add("all_dropped", {}, {{"dropout_p", 1.0}, {"seed", int64_t{5}}});
  // Over the edges of tiles and vectors.
  add("tiles", {.outer = {},
                .heads = 2,
                .key_heads = 1,
                .length = 131,
                .keys = 149,
                .columns = 24,
                .v_columns = 17});
  add("tiles_causal",
      {.outer = {},
       .heads = 1,
       .key_heads = 1,
       .length = 150,
       .keys = 131,
       .columns = 16,
       .v_columns = 16},
      {{"is_causal", true}, {"scale", 0.25}});
  add("tiles_dropout",
      {.outer = {},
       .heads = 1,
       .key_heads = 1,
       .length = 70,
       .keys = 131,
       .columns = 8,
       .v_columns = 8},
      dropout);
  add("chunks", {.outer = {},
                 .heads = 2,
                 .key_heads = 1,
                 .length = 70,
                 .keys = 600,
                 .columns = 8,
                 .v_columns = 8});
  // Read in place: query, key and value are thirds of rows [2,L,3,H,E], as of a packed projection; heads of
  // the results come after positions.
  const auto add_packed = [&](const std::string& variant, int64_t heads, int64_t queries,
                              int64_t keys, int64_t columns, ir::Attributes attrs) {
    const int64_t row = 3 * heads * columns;
    const Shape packed{2, keys, 3, heads, columns}, placed{2, queries, heads, columns};
    const auto view = [&](int64_t third, int64_t rows) {
      return std::vector<int64_t>{
          2, heads, rows, columns, keys * row, columns, row, 1, third * heads * columns};
    };
    // Stats that are not those of the scores give weights above 1: small enough for f16 with wide rows, too.
    attrs.Set("scale", columns < 32 ? 0.5 : 0.125);
    attrs.Set("query_view", view(0, queries));
    attrs.Set("key_view", view(1, keys));
    attrs.Set("value_view", view(2, keys));
    attrs.Set("heads_last", true);
    const std::vector<OpInput> operands(3, Reals(packed, -2, 2));
    OpCase c = Case("scaled_dot_product_attention", "packed_" + variant, operands, attrs);
    c.gradient = false;  // there is none: it is derived before operands are read in place
    c.slack.of_largest_in_low = columns % 8 == 0 ? 0.5 : 0;
    cases.push_back(c);
    std::vector<OpInput> all = operands;
    all.push_back(Reals(placed));
    all.push_back(Pinned(Reals({2, 2, heads, queries}, 1, 2)));
    all.push_back(Reals(placed));
    OpCase grad = Case("scaled_dot_product_attention_grad", "packed_" + variant, all, attrs);
    grad.gradient = false;
    grad.slack = c.slack;
    cases.push_back(grad);
  };
  add_packed("small", 2, 5, 5, 4, {});
  add_packed("causal", 3, 70, 70, 16, causal);
  add_packed("odd", 1, 9, 9, 5, dropout);
  add_packed("chunks", 1, 5, 600, 8, {});
  add_packed("low_tiles", 2, 50, 150, 32, {});
  // Whole tiles of 16-bit columns, over the edges of tiles in rows.
  const auto add_tiled = [&](const std::string& variant, AttentionSize s, ir::Attributes attrs,
                             const std::vector<OpInput>& mask = {}) {
    if (!attrs.Has("scale")) attrs.Set("scale", 0.125);
    s.outer = {};
    add("low_tiles_" + variant, s, attrs, mask);
  };
  const AttentionSize odd = {
      .key_heads = 1, .length = 81, .keys = 149, .columns = 32, .v_columns = 64};
  add_tiled("plain", odd, {});
  add_tiled("causal", odd, causal);
  add_tiled("dropout", odd, dropout);
  add_tiled("mask", odd, {{"scale", -0.125}}, {Pinned(Reals({81, 149}))});
  add_tiled("few", {.length = 3, .keys = 5, .columns = 32, .v_columns = 32}, {}, {Bools({5})});
  add_tiled("one_key", {.key_heads = 1, .length = 5, .keys = 1, .columns = 32, .v_columns = 32},
            {});
  add_tiled("no_keys", {.keys = 0, .columns = 32, .v_columns = 32}, {});
  // Squares, as fused kernels want them under a diagonal.
  add_tiled("square",
            {.heads = 4, .key_heads = 2, .length = 77, .keys = 77, .columns = 64, .v_columns = 64},
            causal);
  add_tiled("short_square", {.key_heads = 2, .length = 3, .keys = 3, .columns = 8, .v_columns = 16},
            causal);
  add_tiled("chunks", {.key_heads = 1, .length = 70, .keys = 600, .columns = 64, .v_columns = 32},
            {});
  // Masks: their gradient too, where they are numbers.
  add("mask", {}, {}, {Pinned(Reals({2, 2, 5, 7}))});
  add("mask_rows", {}, {}, {Pinned(Reals({7}))});
  add("mask_heads", {.heads = 4}, {}, {Pinned(Reals({4, 1, 7}))});
  // The same for all keys, which moves no weight: the true gradient is 0.
  add("mask_queries", {}, {}, {Frozen(Pinned(Reals({2, 1, 5, 1})))});
  add("mask_causal", {}, causal, {Pinned(Reals({5, 7}))});
  add("mask_dropout", {}, dropout, {Pinned(Reals({5, 7}))});
  add("bools", {}, {}, {Bools({2, 1, 5, 7})});
  add("bools_of_keys", {}, {}, {Bools({2, 1, 1, 7})});
  add("bools_tiles", {.outer = {}, .heads = 1, .key_heads = 1, .length = 67, .keys = 90}, {},
      {Bools({67, 90})});
  // Rows 1 and 2 see no key.
  add("nothing_to_see", {.outer = {}, .heads = 1, .key_heads = 1, .length = 3, .keys = 2}, {},
      {Frozen(Pinned(Fixed({3, 2}, {0, kMinusInf, kMinusInf, kMinusInf, kMinusInf, kMinusInf})))});
  // Numbers beside which every score is lost: all weights of rows 0 and 2 are 1 / 4.
  add("large_mask", {.outer = {}, .heads = 1, .key_heads = 1, .length = 3, .keys = 4}, {},
      {Frozen(Pinned(Fixed({3, 1}, {-1e18, 0, -1e18})))});
  cases.pop_back();               // the weights of any other stats are 0 or infinite
  cases.back().gradient = false;  // differences see only rounding
  // One weight rules: gradients are nearly 0, and differences would see only rounding.
  add("large_scores", {}, {{"scale", 2500.0}});
  cases.pop_back();  // the gradient of any other stats overflows
  cases.back().gradient = false;
}

}  // namespace halftone::testing
