#include "halftone/tests/cuda_emulation/shared_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "halftone/tests/cuda_emulation/race_detector.h"

namespace halftone::emulation {
namespace {

constexpr size_t kRedZone = 32;
// The most that a block may use, and red zones around some hundred variables.
constexpr size_t kArenaBytes = size_t{256} * 1024;
constexpr size_t kArenas = RaceDetector::kBlocksApart;

}  // namespace

void SharedArena::BeginBlock(size_t limit) {
  if (memory_ == nullptr) {
    void* memory = mmap(nullptr, kArenaBytes * kArenas, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("emulated CUDA device: shared memory");
      std::abort();
    }
    memory_ = static_cast<unsigned char*>(memory);
    Poison(memory_, kArenaBytes * kArenas);
  }
  // Only what was used can be unpoisoned.
  Poison(memory_ + block_ % kArenas * kArenaBytes, top_);
  if (++block_ % kArenas == 0 && std::exchange(is_touched_, false)) {
    RaceDetector::Forget(memory_, kArenaBytes * kArenas);
  }
  top_ = used_ = 0;
  limit_ = limit;
}

void* SharedArena::Take(size_t bytes, size_t align) {
  align = std::max<size_t>(align, 16);
  const size_t begin = (top_ + kRedZone + align - 1) / align * align;
  if (used_ + bytes > limit_ || begin + bytes + kRedZone > kArenaBytes) return nullptr;
  unsigned char* p = memory_ + block_ % kArenas * kArenaBytes + begin;
  Unpoison(p, bytes);
  // Not memset: ThreadSanitizer would see it, and take it for an access of the thread that asks.
  for (size_t i = 0; i < bytes; ++i) const_cast<volatile unsigned char*>(p)[i] = 0xFF;
  is_touched_ = true;
  top_ = begin + bytes;
  used_ += bytes;
  return p;
}

}  // namespace halftone::emulation
