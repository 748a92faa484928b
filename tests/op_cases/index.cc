// gather gather_grad embedding embedding_grad embedding_grad_rows.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

void AddGather(std::vector<OpCase>& cases) {
  // y is x with idx's extents at `axis`.
  const auto add = [&](const std::string& variant, const Shape& x, DType index, const Shape& idx,
                       int64_t axis, const Shape& y) {
    const int64_t dim = x[static_cast<int>(axis < 0 ? axis + x.rank() : axis)];
    const OpInput picks = Whole(index, idx, 0, static_cast<double>(dim > 0 ? dim - 1 : 0));
    cases.push_back(Case("gather", variant, {Reals(x), picks}, {{"axis", axis}}));
    cases.push_back(
        Case("gather_grad", variant, {Reals(y), picks}, {{"axis", axis}, {"dim", dim}}));
  };
  add("vector", {31}, DType::kI64, {7}, 0, {7});
  add("repeated", {3}, DType::kI64, {33}, 0, {33});
  add("rows", {5, 33}, DType::kI32, {4}, 0, {4, 33});
  add("columns", {5, 7}, DType::kI64, {3}, 1, {5, 3});
  add("negative", {5, 7}, DType::kI64, {3}, -1, {5, 3});
  add("middle", {2, 6, 3}, DType::kI64, {4}, 1, {2, 4, 3});
  add("matrix_of_picks", {6, 3}, DType::kI64, {2, 5}, 0, {2, 5, 3});
  add("scalar_pick", {6, 3}, DType::kI64, {}, 0, {3});
  add("no_picks", {6, 3}, DType::kI64, {0}, 0, {0, 3});
  cases.push_back(NoGradient(Case(
      "gather", "i64_values", {Whole(DType::kI64, {9}, -9, 9), Whole(DType::kI64, {4}, 0, 8)})));
}

void AddEmbedding(std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, int64_t rows, int64_t width, DType index,
                       const Shape& idx, int64_t padding) {
    const OpInput ids = Whole(index, idx, 0, static_cast<double>(rows - 1));
    OpCase c = Case("embedding", variant, {Reals({rows, width}), ids}, {{"padding_idx", padding}});
    // A padding row is read but gets no gradient: no central difference agrees with that.
    c.gradient = padding < 0;
    cases.push_back(c);
    std::vector<int64_t> dims(idx.dims().begin(), idx.dims().end());
    dims.push_back(width);
    for (const char* op : {"embedding_grad", "embedding_grad_rows"}) {
      c = Case(op, variant, {Reals(Shape(dims)), ids}, {{"rows", rows}, {"padding_idx", padding}});
      cases.push_back(std::string(op) == "embedding_grad" ? c : NoGradient(c));
    }
  };
  add("ids", 11, 33, DType::kI64, {5}, -1);
  add("i32", 11, 3, DType::kI32, {7}, -1);
  add("sentence", 6, 4, DType::kI64, {2, 9}, -1);
  add("padding", 4, 3, DType::kI64, {2, 9}, 2);
  add("one_id", 5, 1, DType::kI64, {}, -1);
  add("no_ids", 5, 3, DType::kI64, {0}, -1);
  add("no_width", 5, 0, DType::kI64, {4}, -1);
  add("large_ids", 70'000, 2, DType::kI64, {50}, 7);
  cases.push_back(Case("embedding_grad", "out_f32",
                       {Reals({40, 3}), Whole(DType::kI64, {40}, 0, 2)},
                       {{"rows", int64_t{3}}, {"out", std::string("f32")}}));
  // On top of another gradient: rows that no id names, one that many name, and the padding.
  const OpInput ids = Whole(DType::kI64, {40}, 0, 5);
  cases.push_back(Case("embedding_grad", "base", {Reals({40, 19}), ids, Reals({8, 19})},
                       {{"rows", int64_t{8}}, {"padding_idx", int64_t{3}}}));
  cases.push_back(Case("embedding_grad", "base_out_f32",
                       {Reals({40, 4}), ids, Pinned(Reals({8, 4}))},
                       {{"rows", int64_t{8}}, {"out", std::string("f32")}}));
  cases.push_back(Case("embedding_grad", "base_no_ids",
                       {Reals({0, 4}), Whole(DType::kI32, {0}, 0, 0), Reals({3, 4})},
                       {{"rows", int64_t{3}}}));
  cases.push_back(NoGradient(Case("embedding_grad_rows", "out_f32",
                                  {Reals({40, 3}), Whole(DType::kI64, {40}, 0, 2)},
                                  {{"rows", int64_t{3}}, {"out", std::string("f32")}})));
  // More ids than a tile of the device's sort has, most of them several times.
  cases.push_back(NoGradient(Case("embedding_grad_rows", "many",
                                  {Reals({2500, 5}), Whole(DType::kI32, {2500}, 0, 900)},
                                  {{"rows", int64_t{901}}, {"padding_idx", int64_t{3}}})));
}

}  // namespace

void AddCases_index(std::vector<OpCase>& cases) {
  AddGather(cases);
  AddEmbedding(cases);
}

}  // namespace halftone::testing
