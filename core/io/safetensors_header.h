// The header of a safetensors file: which tensors it has, and where.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "halftone/core/dtype.h"
#include "halftone/core/shape.h"

namespace halftone::io {

inline constexpr uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsHeader {
  // The elements lie in bytes [begin, end) behind the header: as many as dtype and shape take.
  struct Place {
    std::string name;
    DType dtype = DType::kF32;
    Shape shape;
    uint64_t begin = 0, end = 0;
  };
  std::vector<Place> places;  // in the order of the bytes, without gaps
  std::map<std::string, std::string> metadata;

  uint64_t end() const { return places.empty() ? 0 : places.back().end; }
};

// Untrusted. Errors: InvalidArgument saying where and what was expected.
absl::StatusOr<SafetensorsHeader> ParseSafetensorsHeader(const std::string& text);
// Gives tensors that have name, dtype and shape the order and places in which the library of the
// format writes them.
void PutInOrder(std::vector<SafetensorsHeader::Place>& places);
// The same text, padded so that the elements begin at a multiple of 8. Errors: InvalidArgument
// (text that is not UTF-8, a tensor called "__metadata__", more than kMaxSafetensorsHeader bytes).
absl::StatusOr<std::string> FormatSafetensorsHeader(const SafetensorsHeader& header);

}  // namespace halftone::io
