// IDX files, plain and compressed.
#include "halftone/core/io/idx.h"
#include "halftone/tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A bound that compressed bytes reach quickly.
  const std::string path = halftone::testing::FuzzFile(halftone::testing::Bytes(data, size));
  if (halftone::io::ReadIdx(path, int64_t{1} << 22).ok()) ++halftone::testing::accepted;
  return 0;
}
