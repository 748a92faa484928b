#include "halftone/core/philox.h"

#include <cmath>
#include <numbers>

#include "halftone/core/check.h"

namespace halftone {

PhiloxCounter Philox4x32(PhiloxCounter counter, PhiloxKey key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53;
  constexpr uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9;  // golden ratio
  constexpr uint32_t kWeyl1 = 0xBB67AE85;  // sqrt(3) - 1
  constexpr int kRounds = 10;
  for (int round = 0; round < kRounds; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

PhiloxCounter PhiloxBlock(uint64_t seed, uint64_t run, uint64_t group) {
  return Philox4x32({static_cast<uint32_t>(group), static_cast<uint32_t>(group >> 32),
                     static_cast<uint32_t>(run), static_cast<uint32_t>(run >> 32)},
                    {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
}

uint32_t PhiloxStream::NextWord() {
  if (used_ == 4) {
    block_ = PhiloxBlock(seed_, stream_, group_++);
    used_ = 0;
  }
  return block_[used_++];
}

NormalPair NormalFromBits(uint32_t radius_word, uint32_t angle_word) {
  // In (0, 1]: the logarithm stays finite.
  const double u = (static_cast<double>(radius_word >> 8) + 1) * 0x1p-24;
  const double angle = 2 * std::numbers::pi * static_cast<double>(UniformFromBits(angle_word));
  const double radius = std::sqrt(-2 * std::log(u));
  return {static_cast<float>(radius * std::cos(angle)),
          static_cast<float>(radius * std::sin(angle))};
}

float PhiloxStream::Normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const uint32_t radius_word = NextWord();
  const NormalPair pair = NormalFromBits(radius_word, NextWord());
  spare_ = pair.second;
  has_spare_ = true;
  return pair.first;
}

uint64_t PhiloxStream::Below(uint64_t n) {
  HT_CHECK(n > 0, "PhiloxStream::Below(0)");
  // The lowest 2^64 mod n words are redrawn, so every remainder is left equally often.
  const uint64_t rejected = (0 - n) % n;
  for (;;) {
    const uint64_t low = NextWord();
    const uint64_t word = static_cast<uint64_t>(NextWord()) << 32 | low;
    if (word >= rejected) return word % n;
  }
}

uint64_t HashName(const char* data, size_t size) {
  uint64_t hash = 0xCBF29CE484222325;
  for (size_t i = 0; i < size; ++i) {
    hash ^= static_cast<unsigned char>(data[i]);
    hash *= 0x100000001B3;
  }
  return hash;
}

}  // namespace halftone
