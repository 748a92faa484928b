// ZipWriter: a ZIP file of stored members. Source: PKWARE, APPNOTE.TXT 6.3.10.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>

#include "halftone/core/status.h"

namespace halftone::io {

inline constexpr size_t kMaxZipName = 65535;

class ZipWriter {
 public:
  using Write = std::function<absl::Status(std::string_view bytes)>;
  explicit ZipWriter(Write write) : write_(std::move(write)) {}

  // A member whose contents are `parts` one behind the other. Numbers that 32 bits cannot hold
  // become zip64, others do not. Requires: a name of at most kMaxZipName bytes, each once. Errors:
  // those of `write`.
  absl::Status Add(const std::string& name, std::initializer_list<std::string_view> parts);
  // Writes the directory.
  absl::Status Finish();

 private:
  absl::Status Put(std::string_view bytes);

  Write write_;
  uint64_t offset_ = 0, entries_ = 0;
  std::string directory_;
};

}  // namespace halftone::io
