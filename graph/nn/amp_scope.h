// The user's wishes about precision for a part of build().
#pragma once

#include <cstdint>

namespace halftone::nn {

namespace internal {
class Trace;

class AmpScope {
 public:
  AmpScope(const AmpScope&) = delete;
  AmpScope& operator=(const AmpScope&) = delete;

 protected:
  explicit AmpScope(int8_t request);
  ~AmpScope();

 private:
  Trace* trace_;
};
}  // namespace internal

// Ops made while one lives stay f32. Modules called meanwhile keep a wish of their own, see
// Module::allow_low. Does nothing without mixed precision.
// Example: { nn::KeepFp32 scope; scores = nn::softmax(scores, -1); }
class KeepFp32 : public internal::AmpScope {
 public:
  KeepFp32() : AmpScope(-1) {}
};

// Ops made while one lives run in 16 bit where the device can, also those that mixed precision
// would leave in f32.
class AllowLow : public internal::AmpScope {
 public:
  AllowLow() : AmpScope(1) {}
};

}  // namespace halftone::nn
