// A labelled image set in memory, and its batches.
#pragma once

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "halftone/core/tensor.h"

namespace halftone::example {

class Dataset {
 public:
  // Reads <folder>/<part>-images-idx3-ubyte and <part>-labels-idx1-ubyte, with .gz or without.
  // Images u8 [N,H,W], labels u8 [N]. `limit` > 0: only so many, the first. Errors: those of
  // ReadIdx; InvalidArgument where the two files do not fit each other.
  static absl::StatusOr<Dataset> Load(const std::string& folder, const std::string& part,
                                      int64_t limit = 0);

  int64_t size() const { return static_cast<int64_t>(order_.size()); }
  // A new order of the images, the same for equal arguments.
  void Shuffle(uint64_t seed, uint64_t epoch);
  // Images [count,H,W] u8 and labels [count] i64 of positions first..first+count-1 in the current
  // order. Requires: in range.
  std::vector<Tensor> Batch(int64_t first, int64_t count) const;
  // The same of the images with these numbers, whatever the order.
  std::vector<Tensor> Gather(absl::Span<const int64_t> numbers) const;

 private:
  Tensor images_, labels_;
  std::vector<int64_t> order_;
};

}  // namespace halftone::example
