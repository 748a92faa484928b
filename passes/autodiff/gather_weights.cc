#include "halftone/passes/autodiff/gather_weights.h"

#include <utility>

namespace halftone::passes {

GatherWeights::GatherWeights(ir::Builder& builder, std::string name, int64_t ranks, int64_t rank,
                             int64_t bucket_bytes)
    : b_(builder),
      name_(std::move(name)),
      ranks_(ranks),
      rank_(rank),
      bucket_bytes_(bucket_bytes) {}

absl::Status GatherWeights::Add(const ir::Variable& parameter, int64_t owner, ir::Expr updated) {
  const DType dtype = parameter.type.dtype;
  const int64_t bytes = parameter.type.num_elements() * static_cast<int64_t>(SizeOf(dtype));
  Bucket& bucket = open_[dtype];
  if (!bucket.parameters.empty() && bucket.bytes + bytes > bucket_bytes_) Start(bucket, dtype);
  bucket.parameters.push_back(parameter.name);
  bucket.shapes.push_back(parameter.type.shape.ToString());
  bucket.owners.push_back(owner);
  bucket.bytes += bytes;
  if (owner == rank_) bucket.own.push_back(updated);
  return b_.status();
}

ir::Attributes GatherWeights::LayoutOf(const Bucket& bucket) const {
  return {{"ranks", ranks_}, {"rank", rank_}, {"shapes", bucket.shapes}, {"owners", bucket.owners}};
}

void GatherWeights::Start(Bucket& bucket, DType dtype) {
  ir::Attributes attrs = LayoutOf(bucket);
  // The same word on all ranks, whether they have parameters of the bucket or not.
  if (dtype != DType::kF32) attrs.Set("dtype", std::string(Name(dtype)));
  b_.NameNext(Concat(name_, ".weights", started_.size()));
  bucket.buffer = b_.Op("all_gather_start", bucket.own, std::move(attrs));
  started_.push_back(std::exchange(bucket, Bucket()));
}

absl::Status GatherWeights::Finish() {
  for (auto& [dtype, bucket] : open_) {
    if (!bucket.parameters.empty()) Start(bucket, dtype);
  }
  for (size_t i = 0; i < started_.size(); ++i) {
    const Bucket& bucket = started_[i];
    std::vector<int64_t> pieces;
    for (size_t k = 0; k < bucket.owners.size(); ++k) {
      if (bucket.owners[k] != rank_) pieces.push_back(static_cast<int64_t>(k));
    }
    ir::Attributes attrs = LayoutOf(bucket);
    attrs.Set("pieces", pieces);
    b_.NameNext(Concat(name_, ".weights", i, "_gathered"));
    const std::vector<ir::Expr> weights = b_.Make("all_gather_wait", {bucket.buffer}, attrs);
    HT_RETURN_IF_ERROR(b_.status());
    for (size_t k = 0; k < pieces.size(); ++k) {
      b_.Commit(bucket.parameters[static_cast<size_t>(pieces[k])], weights[k]);
    }
  }
  return b_.status();
}

}  // namespace halftone::passes
