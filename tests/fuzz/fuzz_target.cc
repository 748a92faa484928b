#include "halftone/tests/fuzz/fuzz_target.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace halftone::testing {
namespace {

class ScratchFile {
 public:
  ScratchFile() {
    const char* dir = std::getenv("TMPDIR");
    path_ = std::string(dir != nullptr ? dir : "/tmp") + "/halftone_fuzz_XXXXXX";
    const int descriptor = mkstemp(path_.data());
    Require(descriptor >= 0, "a temporary file");
    close(descriptor);
  }
  ~ScratchFile() { std::remove(path_.c_str()); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace

void Require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", what.c_str());
  std::abort();
}

std::string FuzzFile(const std::string& bytes) {
  static const ScratchFile scratch;
  std::FILE* file = std::fopen(scratch.path().c_str(), "wb");
  Require(file != nullptr, scratch.path());
  Require(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size(), scratch.path());
  Require(std::fclose(file) == 0, scratch.path());
  return scratch.path();
}

}  // namespace halftone::testing
