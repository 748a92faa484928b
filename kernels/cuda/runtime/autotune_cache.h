// AutotuneCache: what measuring chose before, by key, in memory and in a file that outlives the
// program.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace halftone::cuda {

// The file is text: a line with name and version, then a line an entry, the oldest first. Untrusted
// input: it is read with a bound, a line that is not what this class writes is passed over, and
// whoever finds a value checks it before use. It is replaced as a whole, under a lock: writers in
// other threads and programs add to one another's entries. Where it cannot be read or written the
// cache lives in memory alone; that is no error.
//
// Thread-safe.
class AutotuneCache {
 public:
  static constexpr size_t kMaxKeyBytes = 512;
  static constexpr size_t kMaxValueBytes = 4096;
  static constexpr size_t kMaxFileEntries = 4096;  // the oldest leave first
  static constexpr int64_t kMaxFileBytes = int64_t{16} << 20;

  // The file at `path`, read at the first Find; none if empty.
  explicit AutotuneCache(std::string path) : path_(std::move(path)) {}

  // The program's, at DefaultPath().
  static AutotuneCache& Global();
  // "autotune.txt" in $HALFTONE_CACHE_DIR, else in $XDG_CACHE_HOME/halftone, else in
  // ~/.cache/halftone. Empty (no file) if HALFTONE_CACHE_DIR is set and empty, or none of them is.
  static std::string DefaultPath();

  // The bytes last stored under `key`, which names all that the choice depends on: library and its
  // version, device, shapes, dtypes.
  std::optional<std::string> Find(const std::string& key);

  // Replaces what was there. A key of more than kMaxKeyBytes or with other characters than
  // printable ASCII, and a value of more than kMaxValueBytes, stay out of the file.
  void Store(const std::string& key, const std::string& value);

 private:
  using Entries = std::vector<std::pair<std::string, std::string>>;

  void LoadOnce();
  Entries ReadEntries() const;
  bool WritePending();

  const std::string path_;
  std::mutex mutex_;
  bool loaded_ = false;
  std::map<std::string, std::string> values_;
  Entries pending_;  // stored here, not yet in the file
};

}  // namespace halftone::cuda
