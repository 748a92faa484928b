#include "halftone/tests/support/allocation_hook.h"

#include <cstddef>
#include <cstdlib>
#include <new>

#include "halftone/core/alloc_counter.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)

namespace halftone::testing {
bool AllocationHookInstalled() { return false; }
}  // namespace halftone::testing

#else

namespace halftone::testing {
bool AllocationHookInstalled() { return true; }
}  // namespace halftone::testing

namespace {

void* CountedNew(size_t size, size_t alignment) {
  halftone::NoteAllocation();
  if (size == 0) size = 1;
  void* data = alignment <= alignof(std::max_align_t)
                   ? std::malloc(size)
                   : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

// The array and nothrow forms of the standard library call these.
void* operator new(size_t size) { return CountedNew(size, 1); }
void* operator new(size_t size, std::align_val_t alignment) {
  return CountedNew(size, static_cast<size_t>(alignment));
}
void operator delete(void* data) noexcept { std::free(data); }
void operator delete(void* data, size_t) noexcept { std::free(data); }
void operator delete(void* data, std::align_val_t) noexcept { std::free(data); }
void operator delete(void* data, size_t, std::align_val_t) noexcept { std::free(data); }

#endif
