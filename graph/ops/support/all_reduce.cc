#include "halftone/graph/ops/support/all_reduce.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace halftone::ops {

int64_t AllReduceBufferElements(int64_t elements, int64_t ranks) {
  if (ranks == 1) return elements;
  const int64_t chunk = (elements + 1 + ranks - 1) / ranks;
  return 2 * ranks * ((chunk + 31) / 32 * 32);
}

absl::StatusOr<std::vector<int64_t>> ParseExtents(const std::string& op, const std::string& text) {
  std::vector<int64_t> extents;
  const bool closed = text.size() >= 2 && text.front() == '[' && text.back() == ']';
  if (closed && text.size() == 2) return extents;
  if (closed) {
    for (const auto part : absl::StrSplit(text.substr(1, text.size() - 2), ',')) {
      int64_t extent = 0;
      if (!absl::SimpleAtoi(part, &extent) || extent < 0) {
        extents.clear();
        break;
      }
      extents.push_back(extent);
    }
  }
  if (!extents.empty()) return extents;
  return InvalidArgument(op, ": shape \"", text, "\"; expected extents such as [8,16]");
}

}  // namespace halftone::ops
