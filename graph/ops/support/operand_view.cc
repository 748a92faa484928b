#include "halftone/graph/ops/support/operand_view.h"

#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

using Ints = std::vector<int64_t>;

// Attribute values that shapes have, too: products of them with extents do not overflow.
constexpr int64_t kMostElements = kMaxElements;

OperandView Parsed(const Ints& numbers) {
  const size_t rank = (numbers.size() - 1) / 2;
  OperandView view;
  view.shape = Shape(Ints(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(rank)));
  // Where nothing is read nothing bounds strides and offset, with which kernels compute all the same.
  if (view.shape.num_elements() == 0) return DenseView(view.shape);
  view.strides.assign(numbers.begin() + static_cast<std::ptrdiff_t>(rank), numbers.end() - 1);
  view.offset = numbers.back();
  return view;
}

}  // namespace

OperandView DenseView(const Shape& shape) {
  const auto strides = shape.strides();
  return {shape, Ints(strides.begin(), strides.end()), 0};
}

Ints ToAttribute(const OperandView& view) {
  Ints numbers = ToInts(view.shape);
  numbers.insert(numbers.end(), view.strides.begin(), view.strides.end());
  numbers.push_back(view.offset);
  return numbers;
}

absl::StatusOr<OperandView> InferView(const ir::InferContext& ctx, int port,
                                      const std::string& name) {
  const Shape& operand = ctx.inputs[static_cast<size_t>(port)].shape;
  const Ints& numbers = ctx.attrs.GetInts(name);
  if (numbers.empty()) return DenseView(operand);
  const auto rank = static_cast<int64_t>(numbers.size() - 1) / 2;
  if (numbers.size() % 2 == 0 || rank < 1 || rank > kMaxRank) {
    return OpError(ctx, name, " has ", numbers.size(),
                   " numbers; expected extents, as many strides, and an offset");
  }
  const absl::Span<const int64_t> all(numbers);
  const auto extents = all.subspan(0, static_cast<size_t>(rank));
  const auto strides = all.subspan(static_cast<size_t>(rank), static_cast<size_t>(rank));
  HT_RETURN_IF_ERROR(MakeShape(ctx, extents).status());
  int64_t last = numbers.back();
  for (size_t i = 0; i < extents.size(); ++i) {
    if (strides[i] < 0 || strides[i] > kMostElements) {
      return OpError(ctx, name, " has a stride ", strides[i], "; expected 0..", kMostElements);
    }
    // No sum of these overflows: there are at most kMaxRank, and each is checked before the next.
    if (extents[i] > 1 && last >= 0 && last <= kMostElements) {
      last = strides[i] > kMostElements / (extents[i] - 1) ? kMostElements + 1
                                                           : last + (extents[i] - 1) * strides[i];
    }
  }
  if (strides.back() != 1) {
    return OpError(ctx, name, " has a last stride ", strides.back(), "; expected 1");
  }
  OperandView view = Parsed(numbers);
  const bool any = view.shape.num_elements() > 0;
  if (view.offset < 0 || (any && last >= operand.num_elements())) {
    return OpError(ctx, name, " ends at element ", view.offset < 0 ? view.offset : last,
                   "; expected 0..", operand.num_elements() - 1, " of ",
                   ctx.inputs[static_cast<size_t>(port)]);
  }
  return view;
}

OperandView ViewOf(const ir::Attributes& attrs, const std::string& name, const Shape& operand) {
  const Ints& numbers = attrs.GetInts(name);
  return numbers.empty() ? DenseView(operand) : Parsed(numbers);
}

ir::AttrSpec ViewAttr(const std::string& input) {
  return {input + "_view", ir::AttrType::kInts, Ints{},
          "extents, strides in elements and offset of " + input +
              " in the operand that holds it; empty: the operand itself"};
}

}  // namespace halftone::ops
