// Fiber: a stack of its own and the switch between two of them.
#pragma once

#include <cstddef>

#include "halftone/tests/cuda_emulation/sanitizers.h"

namespace halftone::emulation {

class Fiber {
 public:
  // Instrumented frames are several times as large.
  static constexpr size_t kStackBytes =
      size_t{kAddressSanitizer || kThreadSanitizer ? 256 : 64} * 1024;

  // Never returns.
  using Entry = void (*)();

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Maps a stack above a page that faults. The fiber starts at `entry` when first switched to;
  // `entry` calls Started first. `colour`: fibers of different colours use different cache sets.
  void Create(Entry entry, int colour);
  bool created() const { return stack_ != nullptr; }
  // Abandons whatever the fiber was doing; the next switch starts `entry` anew.
  void Restart(Entry entry, int colour);
  // Makes this the fiber of the calling host thread.
  void AdoptThread();

  // Leaves `from`, whose code runs now, for `to`; returns when something switches back.
  static void Switch(Fiber& from, Fiber& to);
  static void Started();

 private:
  void* stack_pointer_ = nullptr;
  char* stack_ = nullptr;
  size_t stack_bytes_ = 0;
  void* fake_stack_ = nullptr;  // AddressSanitizer's
};

}  // namespace halftone::emulation
