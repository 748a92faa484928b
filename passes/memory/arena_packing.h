// Offsets in one arena for buffers whose lifetimes are known.
#pragma once

#include <cstdint>
#include <vector>

namespace halftone::passes {

// `bytes` rounded up to what a buffer takes in an arena: whole multiples of kBufferAlignment.
int64_t AlignedBytes(int64_t bytes);

// A buffer that holds its bytes from step `first` to step `last`, both included.
struct Lifetime {
  int64_t bytes = 0;
  int first = 0;
  int last = 0;
};

struct Packing {
  std::vector<int64_t> offsets;  // one per buffer, multiples of 64; 0 for an empty one
  int64_t arena_bytes = 0;
  int64_t visits = 0;  // buffers and groups of buffers looked at by the search, if by size
};

// What the search of the order by size may look at; a step of some thousand layers takes more.
inline constexpr int64_t kMaxPackingVisits = int64_t{1} << 25;

// The better of two greedy orders, largest first and first needed first; each buffer takes the
// tightest gap among those that live at the same time. Deterministic. The second takes n log n, the
// first up to n^2 and is given up at kMaxPackingVisits.
// Source: Pisarchyk, Lee: "Efficient Memory Management for Deep Neural Net Inference", 2020,
// section 5 (greedy by size).
Packing PackArena(const std::vector<Lifetime>& buffers);

}  // namespace halftone::passes
