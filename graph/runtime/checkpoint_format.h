// What the reader and the writer of checkpoints share; see proto/checkpoint.proto.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "halftone/core/align.h"
#include "halftone/core/status.h"

namespace halftone::runtime {

static_assert(std::endian::native == std::endian::little, "files are little-endian");

struct CheckpointPrefix {
  std::array<char, 8> magic;
  uint32_t version;
  uint32_t header_crc32;
  uint64_t header_bytes;
  uint64_t file_bytes;
};
static_assert(sizeof(CheckpointPrefix) == 32);

// Line ends, so that a copy in text mode is noticed.
inline constexpr std::array<char, 8> kCheckpointMagic = {'H', 'T', 'C', 'K', 'P', 'T', '\r', '\n'};
inline constexpr uint32_t kCheckpointVersion = 1;
inline constexpr uint64_t kCheckpointAlignment = 64;
// Far above any real header; it bounds what parsing may take.
inline constexpr uint64_t kMaxCheckpointHeaderBytes = uint64_t{1} << 26;

inline constexpr uint64_t AlignCheckpointOffset(uint64_t offset) {
  return AlignUp(offset, kCheckpointAlignment);
}

// Errors: InvalidArgument for a name (`what`: "tensor", "metadata key") that is empty or too long.
absl::Status CheckCheckpointName(const char* what, const std::string& name);

uint32_t Crc32(const void* data, size_t bytes);

}  // namespace halftone::runtime
