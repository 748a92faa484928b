// Similarities of vectors, and the losses made of them: formulas of other functions, in f32 where
// their operands are 16-bit, mixed precision or not.
#include "halftone/graph/nn/amp_scope.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/functional_formula.h"

namespace halftone::nn {
namespace {

using internal::At;
using internal::CheckAlike;
using internal::CheckReduction;
using internal::Reduced;
using internal::Wide;

// In f32 or wider.
Value CosineOf(const char* op, const Value& x1, const Value& x2, int64_t axis, double eps,
               Loc loc) {
  const At at(loc);
  Value a = Wide(x1, loc), b = Wide(x2, loc);
  const Value products = at(a) * at(b);
  const std::optional<int64_t> along = internal::FindAxis(op, products, axis, loc);
  if (!along) return products;
  const std::vector<int64_t> extents(products.shape().dims().begin(),
                                     products.shape().dims().end());
  if (a.shape() != products.shape()) a = broadcast_to(a, extents, loc);
  if (b.shape() != products.shape()) b = broadcast_to(b, extents, loc);
  const auto length = [&](const Value& v) {
    return maximum(at(norm(v, 2, {*along}, false, loc)), at(eps));
  };
  return at(sum(products, {*along}, false, loc)) / at(at(length(a)) * at(length(b)));
}

}  // namespace

Value cosine_similarity(const Value& x1, const Value& x2, int64_t axis, double eps, Loc loc) {
  const KeepFp32 sums_of_squares_leave_the_range_of_f16;
  const Value y = CosineOf("cosine_similarity", x1, x2, axis, eps, loc);
  return internal::CastTo(y, Promote(x1.dtype(), x2.dtype()), loc);
}

Value cosine_embedding_loss(const Value& x1, const Value& x2, const Value& target, double margin,
                            const std::string& reduction, Loc loc) {
  constexpr char kName[] = "cosine_embedding_loss";
  if (!CheckReduction(kName, reduction, loc) || !CheckAlike(kName, "x2", x2, x1, loc)) return {};
  if (x1.valid() && x1.rank() != 1 && x1.rank() != 2) {
    return Fail(loc, InvalidArgument(kName, ": x is ", Name(x1.dtype()), x1.shape(),
                                     "; expected axes [N,D] or [D]"));
  }
  const KeepFp32 cosines_of_what_is_alike_differ_little_from_1;
  const At at(loc);
  const Value cosine = CosineOf(kName, x1, x2, -1, 1e-8, loc);
  if (!CheckAlike(kName, "target", target, cosine, loc)) return {};
  const Value apart = relu(at(cosine) - at(margin), loc), like = at(1.0) - at(cosine);
  const Value unlike = where(equal(at(target), at(-1.0)), at(apart), at(0.0), loc);
  const Value each = where(equal(at(target), at(1.0)), at(like), at(unlike), loc);
  return Reduced(each, reduction, loc);
}

Value triplet_margin_loss(const Value& anchor, const Value& positive, const Value& negative,
                          double margin, double p, double eps, bool swap,
                          const std::string& reduction, Loc loc) {
  constexpr char kName[] = "triplet_margin_loss";
  if (!CheckReduction(kName, reduction, loc)) return {};
  if (!(margin > 0)) {
    return Fail(loc, InvalidArgument(kName, ": margin is ", margin, "; expected above 0"));
  }
  const KeepFp32 differences_of_rounded_values_are_mostly_rounding;
  const At at(loc);
  const Value a = Wide(anchor, loc), near = Wide(positive, loc), far = Wide(negative, loc);
  const auto distance = [&](const Value& u, const Value& v) {
    return norm(at(at(u) - at(v)) + at(eps), p, {-1}, false, loc);
  };
  Value apart = distance(a, far);
  if (swap) apart = minimum(at(apart), at(distance(near, far)));
  const Value each = relu(at(at(distance(a, near)) - at(apart)) + at(margin), loc);
  return Reduced(each, reduction, loc);
}

}  // namespace halftone::nn
