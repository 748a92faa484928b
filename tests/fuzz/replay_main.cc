// Runs a fuzz target over files: the seeds, and what fuzzing once found. Usage: PROGRAM FOLDER
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "halftone/core/io/file.h"
#include "halftone/tests/fuzz/fuzz_target.h"

int main(int argc, char** argv) {
  if (argc != 2 || !std::filesystem::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(argv[1])) {
    paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    const auto bytes = halftone::io::ReadFile(path, int64_t{1} << 24);
    if (!bytes.ok()) {
      std::fprintf(stderr, "%s\n", std::string(bytes.status().message()).c_str());
      return 1;
    }
    std::printf("%s\n", path.c_str());
    std::fflush(stdout);  // names the file that ends the program
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes->data()), bytes->size());
  }
  std::printf("%zu files, %d accepted\n", paths.size(), halftone::testing::accepted);
  return halftone::testing::accepted > 0 ? 0 : 1;
}
