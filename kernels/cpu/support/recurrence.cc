#include "halftone/kernels/cpu/support/recurrence.h"

namespace halftone::kernels {

RecurrenceShape::RecurrenceShape(const ir::Node& node, int64_t count)
    : steps(node.input_type(0).shape[0]),
      batch(node.input_type(0).shape[1]),
      hidden(node.input_type(0).shape[2] / count),
      features(node.input_type(1).shape[1]),
      dtype(node.input_type(0).dtype),
      reverse_(node.attrs().GetBool("reverse")),
      element_bytes_(static_cast<int64_t>(SizeOf(dtype))) {}

StripedWeights::StripedWeights(const StripShape& shape, int64_t batch)
    : shape_(shape), batch_(batch), row_blocks_((batch + kTileRows - 1) / kTileRows) {
  constexpr int64_t kProductsOfARegion = 50000;
  is_small_ = batch * shape.depth * shape.groups * shape.columns < kProductsOfARegion;
}

void StripedWeights::Pack(PackStripFn pack, const void* w, float* to) const {
  ParallelFor(0, shape_.strips(), is_small_ ? shape_.strips() : 1,
              [&](int64_t first, int64_t last) {
                for (int64_t number = first; number < last; ++number) {
                  pack(shape_, w, number, to + number * shape_.strip_floats());
                }
              });
}

}  // namespace halftone::kernels
