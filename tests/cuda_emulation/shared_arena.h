// SharedArena: the shared memory of the block that runs.
#pragma once

#include <cstddef>
#include <cstdint>

namespace halftone::emulation {

inline constexpr size_t kStaticSharedBytes = size_t{48} * 1024;

class SharedArena {
 public:
  // Everything of the block before is gone (poisoned). `limit`: bytes that a block may use.
  void BeginBlock(size_t limit);
  // Memory between red zones, filled with 0xFF: NaN in every floating-point type. Null: over the
  // limit.
  void* Take(size_t bytes, size_t align);
  size_t used() const { return used_; }  // red zones not counted

 private:
  unsigned char* memory_ = nullptr;
  uint64_t block_ = 0;
  bool is_touched_ = false;  // since all were new
  size_t top_ = 0, used_ = 0, limit_ = 0;
};

}  // namespace halftone::emulation
