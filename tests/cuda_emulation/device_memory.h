// DeviceMemory: one range of addresses for the memory of all devices.
//
// 1. Fresh memory is filled with 0xFF: NaN in every floating-point type, -1, no valid bool.
// 2. Each allocation starts on a page of its own and ends with a red zone of 256 bytes or more:
//    poisoned under AddressSanitizer, else checked for changes when the host waits or frees.
// 3. While the host runs, no page can be accessed; while the device works, the live ones can.
//    Freed ones stay inaccessible.
// 4. Addresses are not used again until all of the range was; then those freed first are.
#pragma once

#include <driver_types.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace halftone::emulation {

struct DeviceAllocation {
  size_t bytes = 0;
  size_t span = 0;  // bytes of pages, red zone included
  int number = 0;   // the n-th of the process
  int device = 0;
};

class DeviceMemory {
 public:
  explicit DeviceMemory(size_t range_bytes) : range_bytes_(range_bytes) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  // Null: the range has no room.
  void* Allocate(size_t bytes, int device);
  // False: not the start of a live allocation.
  bool Free(void* p);
  // Whether p is an address of the range, live or not.
  bool Contains(const void* p) const;
  // The live allocation around p, or null.
  const DeviceAllocation* Find(const void* p) const;
  // Whether all of [p, p + bytes) lies in one live allocation.
  bool Covers(const void* p, size_t bytes) const;
  // "byte 12 of allocation #3 of 8 bytes, freed".
  std::string Describe(const void* p) const;

  // Between them the live pages can be accessed. They nest.
  void Open();
  void Close();
  // Applies Options::protect.
  void SetProtection(bool protect);

  // Says which red zone has changed, or nothing; tells of each change once. Between Open and Close.
  std::string CheckRedZones();

  size_t live_bytes() const;
  size_t live_bytes(int device) const;
  size_t live_allocations() const { return live_.size(); }

 private:
  using Allocations = std::map<uintptr_t, DeviceAllocation>;

  void Reserve();
  // An address with `span` bytes free behind it, or 0.
  uintptr_t FindRoom(size_t span) const;
  std::string CheckRedZone(uintptr_t address, const DeviceAllocation& allocation);

  const size_t range_bytes_;
  uintptr_t base_ = 0, next_ = 0;
  Allocations live_;
  Allocations freed_;  // for Describe
  int count_ = 0, open_ = 0;
  bool protect_ = true;
};

// Opens the device's memory for its scope.
class DeviceAccess {
 public:
  explicit DeviceAccess(DeviceMemory& memory) : memory_(memory) { memory_.Open(); }
  ~DeviceAccess() { memory_.Close(); }
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;

 private:
  DeviceMemory& memory_;
};

}  // namespace halftone::emulation
