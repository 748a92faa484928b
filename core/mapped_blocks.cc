#include "halftone/core/mapped_blocks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "halftone/core/align.h"

// As g++ and clang say it.
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HALFTONE_ADDRESS_SANITIZER 1
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define HALFTONE_ADDRESS_SANITIZER 1
#endif

namespace halftone {
namespace {

#ifdef HALFTONE_ADDRESS_SANITIZER
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

// From here on pages of 2 MiB are asked for: a step that touches its state and its arena for the
// first time then takes 512 times fewer faults.
constexpr size_t kHugeBytes = size_t{1} << 22;

size_t WholePages(size_t bytes) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return AlignUp(bytes, page);
}

void Unmap(const MemoryBlock& block) { munmap(block.data, block.capacity); }

// Blocks that were given back and may be given out again, the oldest first.
class KeptBlocks {
 public:
  // The tightest that holds `bytes` and wastes at most an eighth; null data if there is none.
  MemoryBlock Take(size_t bytes) {
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return {};
    MemoryBlock* best = nullptr;
    for (size_t i = 0; i < count_; ++i) {
      MemoryBlock& block = blocks_[i];
      if (block.capacity < bytes || block.capacity - bytes > bytes / 8) continue;
      if (best == nullptr || block.capacity < best->capacity) best = &block;
    }
    if (best == nullptr) return {};
    const MemoryBlock taken = *best;
    Drop(best);
    return taken;
  }

  // Whether the block is kept.
  bool Keep(const MemoryBlock& block) {
    if (block.capacity > kMaxKeptBytes / 2) return false;
    // After a fork another thread may hold the lock for ever: nobody waits for it.
    const std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    while (count_ == blocks_.size() || bytes_ + block.capacity > kMaxKeptBytes) {
      Unmap(blocks_[0]);
      Drop(&blocks_[0]);
    }
    blocks_[count_++] = block;
    bytes_ += block.capacity;
    return true;
  }

 private:
  void Drop(MemoryBlock* block) {
    bytes_ -= block->capacity;
    std::move(block + 1, blocks_.data() + count_, block);
    --count_;
  }

  std::mutex mutex_;
  std::array<MemoryBlock, 16> blocks_;
  size_t count_ = 0;
  size_t bytes_ = 0;
};

// Never destroyed: tensors of static lifetime may outlive it.
KeptBlocks& Kept() {
  static auto* const kept = new KeptBlocks;
  return *kept;
}

}  // namespace

bool IsMapped(size_t bytes) { return !kAddressSanitizer && bytes >= kMappedBytes; }

MemoryBlock MapBlock(size_t bytes, bool zeroed) {
  if (!zeroed) {
    if (const MemoryBlock kept = Kept().Take(bytes); kept.data != nullptr) return kept;
  }
  const size_t capacity = WholePages(bytes);
  void* const data =
      mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return {};
  if (capacity >= kHugeBytes) madvise(data, capacity, MADV_HUGEPAGE);  // no loss where refused
  return {data, capacity};
}

void UnmapBlock(const MemoryBlock& block) {
  if (!Kept().Keep(block)) Unmap(block);
}

}  // namespace halftone
