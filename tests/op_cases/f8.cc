// Quantisation to 8 bits, products of such operands, and their scales.
#include <limits>

#include "halftone/tests/support/op_cases.h"

namespace halftone::testing {
namespace {

constexpr double kF8Inf = std::numeric_limits<double>::infinity();

OpInput F8Number(double value) { return Pinned(Frozen(Fixed({}, {value}))); }
OpInput F8Of(DType dtype, Shape shape) {
  OpInput input = Pinned(Frozen(Reals(std::move(shape), -4, 4)));
  input.type.dtype = dtype;
  return input;
}

void AddF8Quantise(std::vector<OpCase>& cases) {
  const auto add = [&cases](const std::string& variant, OpInput x, double scale, DType to) {
    cases.push_back(
        NoGradient(Case("f8_quantise", variant, {std::move(x), F8Number(scale)}, {{"to", to}})));
  };
  for (const DType to : {DType::kF8E4M3, DType::kF8E5M2}) {
    const std::string name = Name(to);
    add(name, Reals({7, 33}, -3, 3), 128, to);
    add(name + "_subnormals", Reals({2, 65}, -1, 1), to == DType::kF8E4M3 ? 0x1p-7 : 0x1p-14, to);
    add(name + "_saturates", Reals({3, 5000}, -1000, 1000), 1024, to);
    add(name + "_empty", Reals({0, 4}), 2, to);
    add(name + "_one", Reals({1}), 2, to);
    add(name + "_inf", Fixed({4}, {1, -kF8Inf, 0.5, -0.0}), 2, to);
  }
}

void AddF8Matmul(std::vector<OpCase>& cases) {
  const DType e4m3 = DType::kF8E4M3, e5m2 = DType::kF8E5M2;
  const auto add = [&cases](const std::string& variant, std::vector<OpInput> inputs,
                            ir::Attributes attrs) {
    OpCase c = NoGradient(Case("f8_matmul", variant, std::move(inputs), std::move(attrs)));
    c.dtypes = {DType::kF32};  // operands and result have dtypes of their own
    cases.push_back(std::move(c));
  };
  add("plain", {F8Of(e4m3, {16, 32}), F8Of(e4m3, {32, 48}), F8Number(0.5), F8Number(0.25)},
      {{"to", DType::kF32}});
  add("linear",
      {F8Of(e4m3, {3, 5, 32}), F8Of(e4m3, {16, 32}), F8Number(0.125), F8Number(2),
       Pinned(Frozen(Reals({16})))},
      {{"to", DType::kBF16}, {"transpose_b", true}});
  add("dx", {F8Of(e5m2, {31, 16}), F8Of(e4m3, {16, 32}), F8Number(1), F8Number(0x1p-10)},
      {{"to", DType::kF16}});
  add("dw", {F8Of(e5m2, {48, 16}), F8Of(e4m3, {48, 32}), F8Number(0x1p-3), F8Number(1)},
      {{"to", DType::kF32}, {"transpose_a", true}});
  add("odd", {F8Of(e4m3, {7, 5}), F8Of(e4m3, {3, 5}), F8Number(1), F8Number(1)},
      {{"to", DType::kBF16}, {"transpose_b", true}});
}

void AddF8ScaleUpdate(std::vector<OpCase>& cases) {
  const auto add = [&cases](const std::string& variant, std::vector<double> history, double scale,
                            double amax, ir::Attributes attrs) {
    const Shape shape{static_cast<int64_t>(history.size())};
    OpCase c = NoGradient(
        Case("f8_scale_update", variant,
             {Pinned(Frozen(Fixed(shape, std::move(history)))), F8Number(scale), F8Number(amax)},
             std::move(attrs)));
    c.dtypes = {DType::kF32};
    cases.push_back(std::move(c));
  };
  const ir::Attributes e4m3{{"to", DType::kF8E4M3}}, e5m2{{"to", DType::kF8E5M2}};
  add("first", {0, 0, 0, 0}, 1, 3, e4m3);
  add("older_is_larger", {1, 8, 2, 100}, 64, 3, e5m2);
  add("exact_power", {0, 0}, 1, 448, e4m3);
  add("nothing_seen", {0, 0, 0}, 32, 0, e4m3);
  add("not_finite", {2, 0}, 32, kF8Inf, e4m3);
  add("tiny", {0}, 1, 1e-30, e5m2);
  add("huge", {0}, 1, 3e38, e4m3);
  add("margin", {1, 2}, 1, 4, {{"to", DType::kF8E4M3}, {"margin", int64_t{2}}});
}

}  // namespace

void AddCases_f8(std::vector<OpCase>& cases) {
  AddF8Quantise(cases);
  AddF8Matmul(cases);
  AddF8ScaleUpdate(cases);
}

}  // namespace halftone::testing
