// A folder of its own for a test, removed afterwards.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "halftone/core/strings.h"

namespace halftone::testing {

// For tests that write much or often: a file system in memory where there is one.
inline std::string MemoryDir() {
  const char* memory = "/dev/shm";
  return access(memory, W_OK) == 0 ? memory : ::testing::TempDir();
}

class TempDir {
 public:
  explicit TempDir(const std::string& parent = ::testing::TempDir()) {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    dir_ = std::filesystem::path(parent) /
           Concat("halftone_", test->test_suite_name(), "_", test->name(), "_", getpid());
    std::filesystem::create_directories(dir_);
  }
  ~TempDir() { std::filesystem::remove_all(dir_); }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;

  std::string Path(const std::string& name) const { return (dir_ / name).string(); }
  std::string path() const { return dir_.string(); }
  // Writes a file and gives its path.
  std::string Write(const std::string& name, const std::string& bytes) const {
    std::ofstream(dir_ / name, std::ios::binary | std::ios::trunc) << bytes;
    return Path(name);
  }
  // Names of what lies in it, sorted.
  std::vector<std::string> Names() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(dir_)) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

 private:
  std::filesystem::path dir_;
};

// The bytes of a file; empty if there is none.
inline std::string Bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
}

inline void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

}  // namespace halftone::testing
