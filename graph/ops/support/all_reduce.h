// Sizes of all_reduce_start and all_reduce_wait, and what all ops that exchange between ranks check.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/ops/support/record.h"

namespace halftone::ops {

inline constexpr int64_t kMaxRanks = 1 << 20;
inline constexpr int64_t kMaxReduced = int64_t{1} << 39;  // elements of a reduction

// Of the buffer of a reduction, for `elements` of each of `ranks` processes
// (distributed/all_reduce.h, whose size it is; the kernel checks that).
int64_t AllReduceBufferElements(int64_t elements, int64_t ranks);

// Of an op: `ranks` in range; `reduction` "mean" or "sum". Errors: InvalidArgument.
absl::Status CheckRanks(const ir::InferContext& ctx);
absl::Status CheckReduction(const ir::InferContext& ctx);
// The attribute `dtype`, a name; `usual` where it is empty. Error: InvalidArgument: no float type.
absl::StatusOr<DType> NamedFloat(const ir::InferContext& ctx, DType usual);
// For decompositions, which know of one rank alone. Error: Unimplemented, for a device without kernels
// that exchange.
absl::Status CheckAlone(const char* op, const ir::Attributes& attrs);

// "[8,16]" as extents. Error: InvalidArgument, beginning with `op`.
absl::StatusOr<std::vector<int64_t>> ParseExtents(const std::string& op, const std::string& text);

}  // namespace halftone::ops
