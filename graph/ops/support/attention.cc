#include "halftone/graph/ops/support/attention.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "halftone/graph/ops/support/nn.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {
namespace {

// query [..., L, E] with key and value: their extents before the last two are query's, except that
// each head of theirs (the third last axis) may serve several of query's.
absl::Status CheckKeys(const ir::InferContext& ctx, const ir::ValueType& q, const ir::ValueType& x,
                       int port, const char* name) {
  const int rank = q.shape.rank();
  HT_RETURN_IF_ERROR(CheckSameDType(ctx, port, name, 0, "query"));
  if (x.shape.rank() != rank) {
    return OpError(ctx, name, " is ", x.ToString(), "; expected rank ", rank);
  }
  for (int axis = 0; axis + 2 < rank; ++axis) {
    const int64_t got = x.shape[axis], wanted = q.shape[axis];
    const bool shares = axis == rank - 3 && got > 0 && wanted > 0 && wanted % got == 0;
    if (got == wanted || shares) continue;
    return OpError(ctx, name, " is ", x.ToString(), "; expected ",
                   axis == rank - 3 && wanted > 0 ? Concat("a divisor of the ", wanted, " heads")
                                                  : Concat("extent ", wanted, " along axis ", axis),
                   " of query ", q.ToString());
  }
  return absl::OkStatus();
}

absl::Status CheckAttention(const ir::InferContext& ctx, const AttentionViews& in, int mask_port) {
  const ir::ValueType q{ctx.inputs[0].dtype, in.query.shape}, k{ctx.inputs[1].dtype, in.key.shape};
  const ir::ValueType v{ctx.inputs[2].dtype, in.value.shape};
  const int rank = q.shape.rank();
  if (rank < 2) return OpError(ctx, "query is ", q.ToString(), "; expected rank 2 or more");
  HT_RETURN_IF_ERROR(CheckKeys(ctx, q, k, 1, "key"));
  HT_RETURN_IF_ERROR(CheckKeys(ctx, q, v, 2, "value"));
  if (k.shape[rank - 1] != q.shape[rank - 1]) {
    return OpError(ctx, "key is ", k.ToString(), "; expected last extent ", q.shape[rank - 1],
                   ", that of query ", q.ToString());
  }
  if (v.shape[rank - 2] != k.shape[rank - 2] ||
      (rank > 2 && v.shape[rank - 3] != k.shape[rank - 3])) {
    return OpError(ctx, "value is ", v.ToString(), "; expected the heads and positions of key ",
                   k.ToString());
  }
  const double p = ctx.attrs.GetFloat("dropout_p"), scale = ctx.attrs.GetFloat("scale");
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "dropout_p", p >= 0 && p <= 1, "0..1"));
  HT_RETURN_IF_ERROR(CheckFloat(ctx, "scale", std::isfinite(scale), "a finite number"));
  if (static_cast<int>(ctx.inputs.size()) <= mask_port) return absl::OkStatus();
  const ir::ValueType& mask = ctx.inputs[mask_port];
  const DType wide = WideDType(q.dtype);
  if (mask.dtype != DType::kBool && mask.dtype != wide) {
    return OpError(ctx, "attn_mask is ", mask.ToString(), "; expected bool or ", Name(wide));
  }
  const Shape scores = LeadingShape(q.shape, 1, {k.shape[rank - 2]});
  if (!BroadcastsTo(mask.shape, scores)) {
    return OpError(ctx, "attn_mask is ", mask.ToString(), "; expected a shape that broadcasts to ",
                   scores.ToString(), ", query's positions by key's");
  }
  return absl::OkStatus();
}

// Kernels step over all axes before the heads by one stride.
absl::Status CheckBatch(const ir::InferContext& ctx, const char* name, const OperandView& view) {
  int64_t expected = -1;  // the stride of the next axis outwards
  for (int axis = view.shape.rank() - 4; axis >= 0; --axis) {
    const int64_t extent = view.shape[axis], stride = view.strides[static_cast<size_t>(axis)];
    if (extent <= 1) continue;
    if (expected >= 0 && stride != expected) {
      return OpError(ctx, name, " has the stride ", stride, " along axis ", axis, "; expected ",
                     expected, ", so that the axes before the heads are one in memory");
    }
    expected = stride * extent;
  }
  return absl::OkStatus();
}

}  // namespace

Shape LeadingShape(const Shape& shape, int count, const std::vector<int64_t>& rest) {
  std::vector<int64_t> dims(shape.dims().begin(), shape.dims().end() - count);
  dims.insert(dims.end(), rest.begin(), rest.end());
  return Shape(dims);
}

Shape AttentionViews::Placed(const Shape& heads_first) const {
  if (!heads_last) return heads_first;
  std::vector<int64_t> dims = ToInts(heads_first);
  std::swap(dims[dims.size() - 3], dims[dims.size() - 2]);
  return Shape(dims);
}

OperandView AttentionViews::PlacedView(const Shape& heads_first) const {
  OperandView view = DenseView(Placed(heads_first));
  view.shape = heads_first;
  const size_t rank = view.strides.size();
  if (heads_last) std::swap(view.strides[rank - 3], view.strides[rank - 2]);
  return view;
}

Shape AttentionViews::YShape() const {
  return LeadingShape(query.shape, 1, {value.shape[value.shape.rank() - 1]});
}

HeadRows HeadRowsOf(const OperandView& view) {
  const auto rank = static_cast<size_t>(view.shape.rank());
  HeadRows rows;
  rows.offset = view.offset;
  rows.row = view.strides[rank - 2];
  if (rank > 2) {
    rows.heads = std::max<int64_t>(1, view.shape[static_cast<int>(rank) - 3]);
    rows.head = view.strides[rank - 3];
  }
  // The axes before are one in memory: of those of extent 1 the stride does not matter.
  for (size_t axis = 0; axis + 3 < rank; ++axis) {
    if (view.shape[static_cast<int>(axis)] > 1) rows.batch = view.strides[axis];
  }
  return rows;
}

absl::StatusOr<AttentionViews> InferAttentionViews(const ir::InferContext& ctx, int mask_port) {
  AttentionViews views;
  HT_ASSIGN_OR_RETURN(views.query, InferView(ctx, 0, "query_view"));
  HT_ASSIGN_OR_RETURN(views.key, InferView(ctx, 1, "key_view"));
  HT_ASSIGN_OR_RETURN(views.value, InferView(ctx, 2, "value_view"));
  views.heads_last = ctx.attrs.GetBool("heads_last");
  if (views.heads_last && views.query.shape.rank() < 3) {
    return OpError(ctx, "heads_last with a query of rank ", views.query.shape.rank(),
                   "; expected at least 3");
  }
  HT_RETURN_IF_ERROR(CheckAttention(ctx, views, mask_port));
  HT_RETURN_IF_ERROR(CheckBatch(ctx, "query_view", views.query));
  HT_RETURN_IF_ERROR(CheckBatch(ctx, "key_view", views.key));
  HT_RETURN_IF_ERROR(CheckBatch(ctx, "value_view", views.value));
  return views;
}

AttentionViews AttentionViewsOf(const ir::Attributes& attrs, const Shape& query, const Shape& key,
                                const Shape& value) {
  return {ViewOf(attrs, "query_view", query), ViewOf(attrs, "key_view", key),
          ViewOf(attrs, "value_view", value), attrs.GetBool("heads_last")};
}

AttentionViews AttentionViewsOf(const ir::Node& node) {
  return AttentionViewsOf(node.attrs(), node.input_type(0).shape, node.input_type(1).shape,
                          node.input_type(2).shape);
}

}  // namespace halftone::ops
