// ZipReader: the members of a ZIP file, stored or deflated. Source: PKWARE, APPNOTE.TXT 6.3.10.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/status.h"

namespace halftone::io {

class ZipReader {
 public:
  // Reads so many bytes from an offset on, which the file has. Errors: of the system.
  using ReadAt = std::function<absl::Status(uint64_t offset, void* data, size_t bytes)>;

  struct Member {
    std::string name;
    uint64_t size = 0;    // of its contents
    uint64_t stored = 0;  // bytes in the file
    uint64_t offset = 0;  // of its local header
    uint32_t crc = 0;
    bool deflated = false;
  };

  // Reads the directory of a file of `size` bytes. Untrusted: nothing is allocated that the file
  // does not hold, no member claims more than its bytes can give (1,032 times as many where they
  // are deflated), and no two share a byte.
  // Errors: InvalidArgument (no ZIP file; one of several disks; members that are encrypted,
  // compressed otherwise, or too large for their bytes; a name that occurs twice), DataLoss
  // (truncated, or what it says of itself does not fit together).
  static absl::StatusOr<ZipReader> Open(uint64_t size, ReadAt read);

  // In the order in which they lie in the file.
  const std::vector<Member>& members() const { return members_; }

  // The contents of one, from front to end. Valid as long as the reader.
  class Contents {
   public:
    // Exactly so many bytes more. Errors: DataLoss (damaged, or the end comes first).
    absl::Status Read(void* data, size_t bytes);
    // That all was read, and has the checksum of the directory. Errors: DataLoss.
    absl::Status Finish();

    Contents(Contents&&) noexcept;
    ~Contents();

   private:
    friend class ZipReader;
    Contents();
    struct State;
    std::unique_ptr<State> state_;
  };
  absl::StatusOr<Contents> ReadMember(const Member& member) const;

 private:
  explicit ZipReader(ReadAt read) : read_(std::move(read)) {}

  ReadAt read_;
  uint64_t directory_ = 0;  // where it begins; members lie before it
  std::vector<Member> members_;
};

}  // namespace halftone::io
