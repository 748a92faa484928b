// .npy files.
#include "halftone/core/io/npy.h"
#include "halftone/tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tensor = halftone::io::FromNpyBytes(halftone::testing::Bytes(data, size));
  if (!tensor.ok()) return 0;
  ++halftone::testing::accepted;
  // What is accepted can be written, and reads back as it was.
  const auto again = halftone::io::FromNpyBytes(halftone::io::ToNpyBytes(*tensor));
  halftone::testing::Require(again.ok(), halftone::Message(again.status()));
  halftone::testing::Require(halftone::BitEqual(*again, *tensor), "bytes");
  return 0;
}
