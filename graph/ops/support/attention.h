// The operands of attention as its ops and kernels see them.
#pragma once

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ops/support/operand_view.h"

namespace halftone::ops {

// query [..., H, L, E], key [..., K, S, E], value [..., K, S, V].
struct AttentionViews {
  OperandView query, key, value;
  // Whether y, dy and the gradients have the head behind the position: [..., L, H, V].
  bool heads_last = false;

  // A result of the shape `heads_first` as it is returned: itself, or with its axes -3 and -2 swapped.
  Shape Placed(const Shape& heads_first) const;
  // The strides of the elements of `heads_first`, in that order, in a result so placed.
  OperandView PlacedView(const Shape& heads_first) const;
  Shape YShape() const;  // heads first
};

// Where the rows of each head of such an operand or result lie, in elements.
struct HeadRows {
  int64_t offset = 0;
  int64_t heads = 1;                     // of one element of the batch
  int64_t batch = 0, head = 0, row = 0;  // between two of them

  // The first row of head `number` of all.
  int64_t First(int64_t number) const {
    return offset + number / heads * batch + number % heads * head;
  }
};
HeadRows HeadRowsOf(const OperandView& view);

// Extents before the last `count`, then `rest`.
Shape LeadingShape(const Shape& shape, int count, const std::vector<int64_t>& rest);

// Of an attention whose mask, if any, is operand `mask_port`. Errors: InvalidArgument: those of InferView;
// heads_last of operands of rank 2; axes before the heads that are not one axis in memory; shapes, dtypes
// or attributes that do not go together.
absl::StatusOr<AttentionViews> InferAttentionViews(const ir::InferContext& ctx, int mask_port);
// Of what inference has accepted.
AttentionViews AttentionViewsOf(const ir::Attributes& attrs, const Shape& query, const Shape& key,
                                const Shape& value);
AttentionViews AttentionViewsOf(const ir::Node& node);

}  // namespace halftone::ops
