#include <cmath>

#include "halftone/core/status.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/trace.h"

namespace halftone::nn {
namespace {

using Dims = std::vector<int64_t>;

Dims DimsOf(const Value& x) { return {x.shape().dims().begin(), x.shape().dims().end()}; }

// Extents before the last `count` axes.
Shape Leading(const Value& x, int count) {
  return Shape(x.shape().dims().subspan(0, x.rank() - count));
}

// The operands with the same leading extents, but heads of key and value (the third last axis) that
// the op itself repeats. Such as do not fit stay as they are: the op says what is wrong.
std::vector<Value> BroadcastLeading(const std::vector<Value>& qkv, bool grouped, Loc loc) {
  for (const Value& x : qkv) {
    if (!x.valid() || x.rank() < 2) return qkv;
  }
  // One head of key and value for all of query's needs no copy either.
  const bool shared = qkv[1].rank() > 2 && qkv[2].rank() > 2 &&
                      qkv[1].shape()[qkv[1].rank() - 3] == 1 &&
                      qkv[2].shape()[qkv[2].rank() - 3] == 1;
  const bool heads_stay = qkv[0].rank() > 2 && (grouped || shared);
  const int kept = heads_stay ? 3 : 2;
  Shape leading;
  for (const Value& x : qkv) {
    const absl::StatusOr<Shape> both =
        x.rank() < kept ? Leading(x, x.rank()) : BroadcastShapes(leading, Leading(x, kept));
    if (x.rank() < kept || !both.ok()) return qkv;
    leading = *both;
  }
  std::vector<Value> result;
  for (const Value& x : qkv) {
    Dims dims(leading.dims().begin(), leading.dims().end());
    const Dims own = DimsOf(x);
    dims.insert(dims.end(), own.end() - kept, own.end());
    result.push_back(dims == own ? x : broadcast_to(x, dims, loc));
  }
  return result;
}

}  // namespace

Value scaled_dot_product_attention(const Value& query, const Value& key, const Value& value,
                                   const OptionalValue& attn_mask, const AttentionOptions& options,
                                   Loc loc) {
  internal::Trace* trace = internal::Trace::Current();
  if (trace == nullptr) return {};
  const double p = options.dropout_p;
  if (!(p >= 0 && p < 1)) {
    return Fail(loc, InvalidArgument("scaled_dot_product_attention: dropout_p is ", p,
                                     "; expected 0 <= dropout_p < 1"));
  }
  // As for dropout, the ordinal advances in any mode and for any p.
  const int64_t seed = trace->NextRandomSeed();
  std::vector<Value> operands = internal::PromoteAll({query, key, value}, loc);
  operands = BroadcastLeading(operands, options.enable_gqa, loc);
  const Value &q = operands[0], &k = operands[1];
  const int rank = q.rank();
  if (!options.enable_gqa && q.valid() && k.valid() && rank > 2 && k.rank() == rank &&
      k.shape()[rank - 3] != q.shape()[rank - 3] && k.shape()[rank - 3] != 1) {
    return Fail(loc, InvalidArgument("scaled_dot_product_attention: key has ", k.shape()[rank - 3],
                                     " heads in ", k.shape(), "; expected ", q.shape()[rank - 3],
                                     " as query ", q.shape(), ", or enable_gqa"));
  }
  if (attn_mask.has_value()) {
    // Numbers keep f32's range beside 16-bit operands.
    const Value& mask = attn_mask.value();
    operands.push_back(IsFloat(mask.dtype()) && IsFloat(q.dtype())
                           ? internal::CastTo(mask, Promote(q.dtype(), DType::kF32), loc)
                           : mask);
  }
  const int64_t columns = rank == 0 ? 1 : q.shape()[rank - 1];
  const double usual = 1 / std::sqrt(static_cast<double>(columns == 0 ? 1 : columns));
  return Op("scaled_dot_product_attention", operands,
            {{"scale", options.scale.value_or(usual)},
             {"is_causal", options.is_causal},
             {"dropout_p", trace->module_training() ? p : 0.0},
             {"seed", seed}},
            loc);
}

}  // namespace halftone::nn
