#include "halftone/tests/cuda_emulation/device_memory.h"

#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "halftone/tests/cuda_emulation/sanitizers.h"

namespace halftone::emulation {
namespace {

constexpr size_t kPage = 4096;
constexpr size_t kMinRedZone = 256;
constexpr unsigned char kFill = 0xFF;

unsigned char* Pointer(uintptr_t address) { return reinterpret_cast<unsigned char*>(address); }
uintptr_t Address(const void* p) { return reinterpret_cast<uintptr_t>(p); }

void Protect(uintptr_t address, size_t bytes, int access) {
  if (bytes > 0 && mprotect(Pointer(address), bytes, access) != 0) {
    std::perror("emulated CUDA device: protection of device memory");
    std::abort();
  }
}

}  // namespace

DeviceMemory::~DeviceMemory() {
  if (base_ == 0) return;
  Unpoison(Pointer(base_), range_bytes_);
  munmap(Pointer(base_), range_bytes_);
}

void DeviceMemory::Reserve() {
  void* range =
      mmap(nullptr, range_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) {
    std::perror("emulated CUDA device: device memory");
    std::abort();
  }
  base_ = next_ = Address(range);
}

uintptr_t DeviceMemory::FindRoom(size_t span) const {
  const uintptr_t end = base_ + range_bytes_;
  // From where the last allocation ended upwards, then once more from the bottom.
  uintptr_t candidate = next_;
  auto above = live_.lower_bound(candidate);
  for (int round = 0; round < 2; ++round) {
    for (; above != live_.end(); ++above) {
      if (above->first - candidate >= span) return candidate;
      candidate = above->first + above->second.span;
    }
    if (end - candidate >= span) return candidate;
    candidate = base_;
    above = live_.begin();
  }
  return 0;
}

void* DeviceMemory::Allocate(size_t bytes, int device) {
  if (base_ == 0) Reserve();
  if (bytes > range_bytes_) return nullptr;
  const size_t span = (bytes + kMinRedZone + kPage - 1) / kPage * kPage;
  const uintptr_t address = FindRoom(span);
  if (address == 0) return nullptr;
  next_ = address + span;
  for (auto it = freed_.lower_bound(address); it != freed_.end() && it->first < next_;) {
    it = freed_.erase(it);
  }
  Protect(address, span, PROT_READ | PROT_WRITE);
  Unpoison(Pointer(address), span);
  const size_t filled = bytes + (kAddressSanitizer ? 0 : span - bytes);
  std::memset(Pointer(address), kFill, filled);
  Poison(Pointer(address) + bytes, span - bytes);
  if (protect_ && open_ == 0) Protect(address, span, PROT_NONE);
  live_[address] = {bytes, span, ++count_, device};
  return Pointer(address);
}

bool DeviceMemory::Free(void* p) {
  const auto it = live_.find(Address(p));
  if (it == live_.end()) return false;
  const auto [address, allocation] = *it;
  live_.erase(it);
  freed_[address] = allocation;
  Poison(Pointer(address), allocation.span);
  madvise(Pointer(address), allocation.span, MADV_DONTNEED);
  Protect(address, allocation.span, PROT_NONE);
  return true;
}

bool DeviceMemory::Contains(const void* p) const {
  return base_ != 0 && Address(p) >= base_ && Address(p) < base_ + range_bytes_;
}

const DeviceAllocation* DeviceMemory::Find(const void* p) const {
  auto it = live_.upper_bound(Address(p));
  if (it == live_.begin()) return nullptr;
  --it;
  return Address(p) < it->first + it->second.bytes ? &it->second : nullptr;
}

bool DeviceMemory::Covers(const void* p, size_t bytes) const {
  auto it = live_.upper_bound(Address(p));
  if (it == live_.begin()) return false;
  --it;
  const size_t offset = Address(p) - it->first;
  return offset <= it->second.bytes && bytes <= it->second.bytes - offset;
}

std::string DeviceMemory::Describe(const void* p) const {
  // Of the allocations that start at or below p the last.
  const Allocations::value_type* found = nullptr;
  for (const Allocations* allocations : {&live_, &freed_}) {
    auto it = allocations->upper_bound(Address(p));
    if (it == allocations->begin()) continue;
    --it;
    if (found == nullptr || it->first > found->first) found = &*it;
  }
  if (found == nullptr) return "device memory below every allocation";
  return "byte " + std::to_string(Address(p) - found->first) + " of allocation #" +
         std::to_string(found->second.number) + " of " + std::to_string(found->second.bytes) +
         " bytes" + (freed_.count(found->first) != 0 ? ", freed" : "");
}

void DeviceMemory::Open() {
  if (open_++ > 0 || !protect_) return;
  // One call for each run of live allocations without freed ones between them.
  for (auto it = live_.begin(); it != live_.end();) {
    const uintptr_t begin = it->first;
    uintptr_t end = begin;
    for (; it != live_.end() && it->first == end; ++it) end += it->second.span;
    Protect(begin, end - begin, PROT_READ | PROT_WRITE);
  }
}

void DeviceMemory::Close() {
  if (--open_ > 0 || !protect_ || live_.empty()) return;
  const auto& last = *live_.rbegin();
  const uintptr_t begin = live_.begin()->first;
  Protect(begin, last.first + last.second.span - begin, PROT_NONE);
}

void DeviceMemory::SetProtection(bool protect) {
  if (protect == protect_) return;
  if (protect) {
    protect_ = true;
    ++open_;
    Close();
  } else {
    Open();
    --open_;
    protect_ = false;
  }
}

std::string DeviceMemory::CheckRedZone(uintptr_t address, const DeviceAllocation& allocation) {
  for (size_t i = allocation.bytes; i < allocation.span; ++i) {
    if (Pointer(address)[i] == kFill) continue;
    const std::string where = Describe(Pointer(address) + i);
    std::memset(Pointer(address) + allocation.bytes, kFill, allocation.span - allocation.bytes);
    return "device code wrote out of bounds: " + where;
  }
  return "";
}

std::string DeviceMemory::CheckRedZones() {
  if (kAddressSanitizer) return "";  // it saw the write itself
  std::string report;
  for (const auto& [address, allocation] : live_) {
    const std::string changed = CheckRedZone(address, allocation);
    if (report.empty()) report = changed;
  }
  return report;
}

size_t DeviceMemory::live_bytes() const {
  size_t bytes = 0;
  for (const auto& [address, allocation] : live_) bytes += allocation.bytes;
  return bytes;
}

size_t DeviceMemory::live_bytes(int device) const {
  size_t bytes = 0;
  for (const auto& [address, allocation] : live_) {
    if (allocation.device == device) bytes += allocation.bytes;
  }
  return bytes;
}

}  // namespace halftone::emulation
