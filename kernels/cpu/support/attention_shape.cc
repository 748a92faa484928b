#include "halftone/kernels/cpu/support/attention_shape.h"

#include <cmath>

namespace halftone::kernels {
namespace {

// Multiply-adds below which threads cost more than they save.
constexpr double kWorthThreads = 1 << 18;

}  // namespace

AttentionShape::AttentionShape(const ir::Node& node, int mask_port)
    : AttentionShape(node, mask_port, ops::AttentionViewsOf(node)) {}

AttentionShape::AttentionShape(const ir::Node& node, int mask_port,
                               const ops::AttentionViews& views)
    : q_(ops::HeadRowsOf(views.query)),
      k_(ops::HeadRowsOf(views.key)),
      v_(ops::HeadRowsOf(views.value)),
      y_(ops::HeadRowsOf(views.PlacedView(views.YShape()))),
      dq_(ops::HeadRowsOf(views.PlacedView(views.query.shape))),
      dk_(ops::HeadRowsOf(views.PlacedView(views.key.shape))),
      dv_(ops::HeadRowsOf(views.PlacedView(views.value.shape))) {
  const Shape &q = views.query.shape, &k = views.key.shape, &v = views.value.shape;
  const int rank = q.rank();
  const double p = node.attrs().GetFloat("dropout_p");
  run_ = {.length = q[rank - 2],
          .keys = k[rank - 2],
          .columns = q[rank - 1],
          .v_columns = v[rank - 1],
          .q_row = q_.row,
          .k_row = k_.row,
          .v_row = v_.row,
          .y_row = y_.row,
          .scale = static_cast<float>(node.attrs().GetFloat("scale")),
          .causal = node.attrs().GetBool("is_causal"),
          .bool_mask = false,
          .mask_row = 0,
          .mask_column = 0,
          .seed = static_cast<uint64_t>(node.attrs().GetInt("seed")),
          .run = 0,
          // u * 2^-24 >= p for whole u.
          .threshold = static_cast<int32_t>(std::ceil(p * 0x1p24)),
          .keep = static_cast<float>(1 / (1 - p))};
  size_ = static_cast<int64_t>(SizeOf(node.input_type(0).dtype));
  for (int i = 0; i + 2 < rank; ++i) heads_ *= q[i];
  if (rank > 2 && k[rank - 3] > 0) group_ = q[rank - 3] / k[rank - 3];
  small_ = static_cast<double>(heads_ * run_.length) *
               static_cast<double>(run_.keys * (run_.columns + run_.v_columns)) <
           kWorthThreads;
  if (node.num_inputs() <= mask_port) return;
  const ir::ValueType& mask = node.input_type(mask_port);
  run_.bool_mask = mask.dtype == DType::kBool;
  const auto mask_size = static_cast<int64_t>(SizeOf(mask.dtype));
  // Strides of the scores' axes in the mask, from the last.
  const auto strides = mask.shape.strides();
  const auto stride_of = [&](int axis) {
    const int own = axis - (rank - mask.shape.rank());
    return own < 0 || mask.shape[own] == 1 ? int64_t{0} : strides[own];
  };
  run_.mask_row = stride_of(rank - 2);
  run_.mask_column = stride_of(rank - 1);
  mask_starts_.resize(static_cast<size_t>(heads_));
  for (int64_t head = 0; head < heads_; ++head) {
    int64_t start = 0, rest = head;
    for (int axis = rank - 3; axis >= 0; --axis) {
      start += rest % q[axis] * stride_of(axis);
      rest /= q[axis];
    }
    mask_starts_[static_cast<size_t>(head)] = start * mask_size;
  }
}

AttentionHead AttentionShape::Head(int64_t number, const void* q, const void* k, const void* v,
                                   const void* mask) const {
  const int64_t key_head = number / group_;
  AttentionHead head;
  head.q = static_cast<const char*>(q) + q_.First(number) * size_;
  head.k = static_cast<const char*>(k) + k_.First(key_head) * size_;
  head.v = static_cast<const char*>(v) + v_.First(key_head) * size_;
  head.mask = nullptr;
  if (!mask_starts_.empty()) {
    head.mask = static_cast<const char*>(mask) + mask_starts_[static_cast<size_t>(number)];
  }
  head.number = static_cast<uint64_t>(number);
  return head;
}

absl::Status WholeTilesOfColumns(const ir::Node& node) {
  constexpr int64_t kDepth = 32;
  const ops::AttentionViews views = ops::AttentionViewsOf(node);
  for (const Shape& shape : {views.query.shape, views.value.shape}) {
    const int64_t columns = shape[shape.rank() - 1];
    if (columns == 0 || columns % kDepth != 0) {
      return Unimplemented(columns, " columns; tiles take multiples of ", kDepth);
    }
  }
  if (ops::HeadRowsOf(views.query).row % 2 != 0) {
    return Unimplemented("rows of query an odd number of elements apart; tiles take pairs");
  }
  return absl::OkStatus();
}

}  // namespace halftone::kernels
