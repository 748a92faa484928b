// Checkpoint files. The header's checksum is put right first: else every change would end there.
#include <cstring>

#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/graph/runtime/checkpoint_format.h"
#include "halftone/tests/fuzz/fuzz_target.h"

namespace {

using halftone::runtime::CheckpointPrefix;
using halftone::testing::Require;

void MendHeaderChecksum(std::string& bytes) {
  CheckpointPrefix prefix;
  if (bytes.size() < sizeof(prefix)) return;
  std::memcpy(&prefix, bytes.data(), sizeof(prefix));
  prefix.file_bytes = bytes.size();
  if (prefix.header_bytes > bytes.size() - sizeof(prefix)) return;
  prefix.header_crc32 =
      halftone::runtime::Crc32(bytes.data() + sizeof(prefix), prefix.header_bytes);
  std::memcpy(bytes.data(), &prefix, sizeof(prefix));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes = halftone::testing::Bytes(data, size);
  MendHeaderChecksum(bytes);
  const std::string path = halftone::testing::FuzzFile(bytes);
  const auto read = halftone::runtime::ReadCheckpoint(path);
  if (!read.ok()) return 0;
  ++halftone::testing::accepted;
  // What is accepted can be written, and reads back as it was.
  const absl::Status written = halftone::runtime::WriteCheckpoint(path + ".again", *read);
  Require(written.ok(), halftone::Message(written));
  const auto again = halftone::runtime::ReadCheckpoint(path + ".again");
  Require(again.ok(), halftone::Message(again.status()));
  Require(again->metadata == read->metadata, "metadata");
  Require(again->tensors.size() == read->tensors.size(), "number of tensors");
  for (const auto& [name, tensor] : read->tensors) {
    Require(halftone::BitEqual(again->tensors.at(name), tensor), name);
  }
  return 0;
}
