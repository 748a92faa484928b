// .safetensors files.
#include "halftone/core/io/safetensors.h"
#include "halftone/tests/fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using halftone::testing::Require;
  const auto contents = halftone::io::FromSafetensorsBytes(halftone::testing::Bytes(data, size));
  if (!contents.ok()) return 0;
  ++halftone::testing::accepted;
  // What is accepted can be written, and reads back as it was.
  const std::string path = halftone::testing::FuzzFile("");
  const absl::Status written = halftone::io::WriteSafetensors(path, *contents);
  Require(written.ok(), halftone::Message(written));
  const auto again = halftone::io::ReadSafetensors(path);
  Require(again.ok(), halftone::Message(again.status()));
  Require(again->metadata == contents->metadata, "metadata");
  Require(again->tensors.size() == contents->tensors.size(), "number of tensors");
  for (const auto& [name, tensor] : contents->tensors) {
    Require(halftone::BitEqual(again->tensors.at(name), tensor), name);
  }
  return 0;
}
