#include "halftone/tests/fuzz/fuzz_target.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

namespace halftone::testing {
namespace {

class ScratchFile {
 public:
  ScratchFile() {
    const char* dir = std::getenv("TMPDIR");
    folder_ = std::string(dir != nullptr ? dir : "/tmp") + "/halftone_fuzz_XXXXXX";
    Require(mkdtemp(folder_.data()) != nullptr, "a temporary folder");
    path_ = folder_ + "/file";
  }
  ~ScratchFile() { std::filesystem::remove_all(folder_); }
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string folder_, path_;
};

}  // namespace

int accepted = 0;

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
