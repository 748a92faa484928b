// .npz files: ZIP, deflate, and the .npy files in them.
#include "halftone/core/io/npz.h"
#include "halftone/tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using halftone::testing::Require;
  const auto contents = halftone::io::FromNpzBytes(halftone::testing::Bytes(data, size));
  if (!contents.ok()) return 0;
  ++halftone::testing::accepted;
  // What is accepted can be written, and reads back as it was; but names may have NUL bytes.
  const std::string path = halftone::testing::FuzzFile("");
  const absl::Status written = halftone::io::WriteNpz(path, *contents);
  for (const auto& [name, tensor] : *contents) {
    if (name.find('\0') != std::string::npos) return 0;
  }
  Require(written.ok(), halftone::Message(written));
  const auto again = halftone::io::ReadNpz(path);
  Require(again.ok(), halftone::Message(again.status()));
  Require(again->size() == contents->size(), "number of arrays");
  for (const auto& [name, tensor] : *contents) {
    Require(halftone::BitEqual(again->at(name), tensor), name);
  }
  return 0;
}
