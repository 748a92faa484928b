// Large blocks of host memory, mapped from the system one by one, so that sizes which never come
// again (a graph called with shapes that grow by one) leave no holes behind in the heap.
#pragma once

#include <cstddef>

namespace halftone {

// Buffers of at least this many bytes are blocks of their own. Smaller ones fit the holes that the
// heap has anyway.
inline constexpr size_t kMappedBytes = size_t{1} << 18;

// Bytes that a buffer owns.
struct MemoryBlock {
  void* data = nullptr;  // null: the system has no more memory
  size_t capacity = 0;
};

// Whether a buffer of `bytes` is a mapped block. Never under AddressSanitizer, which watches the
// bounds of heap blocks only.
bool IsMapped(size_t bytes);

// A block of at least `bytes`. Contents are undefined, or zero if `zeroed`: such pages come from
// the system when they are first touched, and cost nothing before. Thread-safe; of heap memory
// neither this nor UnmapBlock takes any.
MemoryBlock MapBlock(size_t bytes, bool zeroed);

// Gives a block back. A few are kept for the next request of about their size, since the system
// clears every page that it gives: at most kMaxKeptBytes in all, the oldest go first.
void UnmapBlock(const MemoryBlock& block);
inline constexpr size_t kMaxKeptBytes = size_t{1} << 26;

}  // namespace halftone
