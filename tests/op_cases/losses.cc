// cross_entropy and its gradient, mse_loss, l1_loss.
#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

struct CrossEntropyCase {
  const char* name;
  Shape logits, target;
  int64_t axis = 1;
  double label_smoothing = 0;
  int64_t ignore_index = -100;
  DType index = DType::kI64;
};

std::vector<CrossEntropyCase> CrossEntropyCases() {
  return {{"rows", {6, 10}, {6}},
          {"i32", {6, 10}, {6}, 1, 0, -100, DType::kI32},
          {"one_row", {1, 3}, {1}},
          {"one_class", {4, 1}, {4}},
          {"vector", {7}, {}, 0},
          {"class_axis_first", {5, 6}, {6}, 0},
          {"class_axis_middle", {3, 5, 4}, {3, 4}},
          {"image", {2, 4, 3, 2}, {2, 3, 2}},
          {"class_axis_last", {2, 3, 5}, {2, 3}, -1},
          {"smoothing", {6, 10}, {6}, 1, 0.1},
          {"smoothing_only", {4, 3}, {4}, 1, 1},
          {"ignored", {9, 3}, {9}, 1, 0, 2},
          {"ignored_smoothing", {3, 4, 5}, {3, 5}, 1, 0.2, 0},
          {"many_classes", {5, 133}, {5}}};
}

void AddCrossEntropy(const CrossEntropyCase& t, const std::string& reduction,
                     std::vector<OpCase>& cases) {
  const Shape& x = t.logits;
  const int64_t classes = x[static_cast<int>(t.axis < 0 ? t.axis + x.rank() : t.axis)];
  const OpInput target = Whole(t.index, t.target, 0, static_cast<double>(classes - 1));
  const ir::Attributes attrs = {{"axis", t.axis},
                                {"label_smoothing", t.label_smoothing},
                                {"ignore_index", t.ignore_index},
                                {"reduction", reduction}};
  const std::string name = Concat(t.name, "_", reduction);
  cases.push_back(Case("cross_entropy", name, {Reals(x, -3, 3), target}, attrs));
  // stats near those of the logits: exp(logits - stats[0] - stats[1]) stays of order one.
  std::vector<int64_t> stats = {2};
  stats.insert(stats.end(), t.target.dims().begin(), t.target.dims().end());
  const Shape loss = reduction == "none" ? t.target : Shape{};
  cases.push_back(Case(
      "cross_entropy_grad", name,
      {Reals(x, -3, 3), target, Pinned(Reals(Shape(stats), 1, 2)), Pinned(Reals(loss, 0.5, 2))},
      attrs));
}

void AddRegression(const char* op, std::vector<OpCase>& cases) {
  const auto add = [&](const std::string& variant, const Shape& x) {
    for (const char* reduction : {"none", "sum", "mean"}) {
      // Apart by 0.5 and more: no difference changes sign within the difference step.
      cases.push_back(Case(op, variant + "_" + reduction, {Reals(x, -1, 0), Reals(x, 0.5, 1)},
                           {{"reduction", std::string(reduction)}}));
      cases.push_back(Case(op, variant + "_above_" + reduction, {Reals(x, 0.5, 2), Reals(x, -1, 0)},
                           {{"reduction", std::string(reduction)}}));
    }
  };
  add("scalar", {});
  add("vector", {33});
  add("image", {2, 3, 4, 5});
}

}  // namespace

void AddCases_losses(std::vector<OpCase>& cases) {
  for (const CrossEntropyCase& t : CrossEntropyCases()) {
    for (const char* reduction : {"none", "sum", "mean"}) AddCrossEntropy(t, reduction, cases);
  }
  AddRegression("mse_loss", cases);
  AddRegression("l1_loss", cases);
}

}  // namespace halftone::testing
