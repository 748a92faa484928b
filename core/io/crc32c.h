// CRC-32C, the checksum of TFRecord files. Source: RFC 3720, appendix B.4 (polynomial, test
// values).
#pragma once

#include <cstdint>
#include <string_view>

namespace halftone::io {

uint32_t Crc32c(std::string_view bytes);

// What a TFRecord stores in its place, rotated and moved, so that the checksum of bytes that hold
// checksums is worth something. Source: TensorFlow, tensorflow/core/lib/hash/crc32c.h, "Mask".
constexpr uint32_t MaskCrc32c(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xA282EAD8U; }

}  // namespace halftone::io
