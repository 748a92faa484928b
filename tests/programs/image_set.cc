#include "halftone/tests/programs/image_set.h"

#include <cstdint>
#include <filesystem>

#include "halftone/core/philox.h"
#include "halftone/core/strings.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {

std::string BigEndian(uint32_t x) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(x >> shift & 255);
  return bytes;
}

void WriteImageSet(const std::string& folder, int images, uint64_t seed) {
  PhiloxStream random(seed);
  std::filesystem::create_directories(folder);
  const auto count = static_cast<uint32_t>(images);
  for (const char* part : {"train", "t10k"}) {
    std::string pixels = BigEndian(0x803) + BigEndian(count) + BigEndian(28) + BigEndian(28);
    std::string labels = BigEndian(0x801) + BigEndian(count);
    for (int i = 0; i < images * 28 * 28; ++i) pixels += static_cast<char>(random.Below(256));
    for (int i = 0; i < images; ++i) labels += static_cast<char>(random.Below(10));
    WriteBytes(Concat(folder, "/", part, "-images-idx3-ubyte"), pixels);
    WriteBytes(Concat(folder, "/", part, "-labels-idx1-ubyte"), labels);
  }
}

}  // namespace halftone::testing
