#include "halftone/tests/programs/image_set.h"

#include <cstdint>
#include <filesystem>

#include "halftone/core/philox.h"
#include "halftone/core/strings.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {
namespace {

// Two IDX sets; `pixel` gives one of an image of a label.
template <typename Pixel>
void WriteSets(const std::string& folder, int images, PhiloxStream& random, const Pixel& pixel) {
  std::filesystem::create_directories(folder);
  const auto count = static_cast<uint32_t>(images);
  for (const char* part : {"train", "t10k"}) {
    std::string pixels = BigEndian(0x803) + BigEndian(count) + BigEndian(28) + BigEndian(28);
    std::string labels = BigEndian(0x801) + BigEndian(count);
    for (int i = 0; i < images; ++i) {
      const auto label = static_cast<int>(random.Below(10));
      labels += static_cast<char>(label);
      for (int p = 0; p < 28 * 28; ++p) pixels += static_cast<char>(pixel(label, p / 28));
    }
    WriteBytes(Concat(folder, "/", part, "-images-idx3-ubyte"), pixels);
    WriteBytes(Concat(folder, "/", part, "-labels-idx1-ubyte"), labels);
  }
}

}  // namespace

std::string BigEndian(uint32_t x) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(x >> shift & 255);
  return bytes;
}

void WriteImageSet(const std::string& folder, int images, uint64_t seed) {
  PhiloxStream random(seed);
  WriteSets(folder, images, random, [&](int, int) { return random.Below(256); });
}

void WriteStripedImageSet(const std::string& folder, int images, uint64_t seed) {
  PhiloxStream random(seed);
  WriteSets(folder, images, random, [&](int label, int row) {
    return random.Below(64) + ((row - 4) / 2 == label && row >= 4 ? 192 : 0);
  });
}

}  // namespace halftone::testing
