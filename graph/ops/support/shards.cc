#include "halftone/graph/ops/support/shards.h"

#include <numeric>

#include "halftone/graph/ops/support/all_reduce.h"

namespace halftone::ops {

absl::StatusOr<ShardLayout> ShardLayout::Of(const std::string& op, const ir::Attributes& attrs) {
  const int64_t ranks = attrs.GetInt("ranks"), rank = attrs.GetInt("rank");
  const auto& shapes = attrs.Get<std::vector<std::string>>("shapes");
  const auto& owners = attrs.Get<std::vector<int64_t>>("owners");
  if (ranks < 1 || ranks > kMaxRanks) {
    return InvalidArgument(op, ": ranks is ", ranks, "; expected 1..", kMaxRanks);
  }
  if (rank < 0 || rank >= ranks) {
    return InvalidArgument(op, ": rank is ", rank, "; expected 0..", ranks - 1);
  }
  if (shapes.size() != owners.size()) {
    return InvalidArgument(op, ": ", owners.size(), " owners of ", shapes.size(),
                           " shapes; expected as many");
  }
  ShardLayout layout;
  layout.parts.assign(static_cast<size_t>(ranks), 0);
  int64_t all = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (owners[i] < 0 || owners[i] >= ranks) {
      return InvalidArgument(op, ": owner ", i, " is ", owners[i], "; expected 0..", ranks - 1);
    }
    HT_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, ParseExtents(op, shapes[i]));
    HT_ASSIGN_OR_RETURN(Shape shape, Shape::Make(dims));
    int64_t& part = layout.parts[static_cast<size_t>(owners[i])];
    const int64_t elements = shape.num_elements();
    if (elements > kMaxReduced || (all += elements) > kMaxReduced) {
      return InvalidArgument(op, ": more than 2^39 elements");
    }
    layout.pieces.push_back({std::move(shape), owners[i], part});
    part += elements;
  }
  for (int64_t& part : layout.parts) part = (part + 1 + 31) / 32 * 32;
  std::vector<int64_t> begins(layout.parts.size());
  std::exclusive_scan(layout.parts.begin(), layout.parts.end(), begins.begin(), int64_t{0});
  for (Piece& piece : layout.pieces) piece.offset += begins[static_cast<size_t>(piece.owner)];
  return layout;
}

int64_t ShardLayout::elements() const {
  return std::accumulate(parts.begin(), parts.end(), int64_t{0});
}

int64_t ShardLayout::ScatterElements(int64_t rank) const {
  const auto others = static_cast<int64_t>(parts.size()) - 1;
  return others == 0 ? elements() : elements() + others * parts[static_cast<size_t>(rank)] + 32;
}

std::vector<size_t> ShardLayout::OwnedBy(int64_t rank) const {
  std::vector<size_t> positions;
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].owner == rank) positions.push_back(i);
  }
  return positions;
}

}  // namespace halftone::ops
