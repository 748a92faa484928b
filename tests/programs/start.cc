#include "halftone/tests/programs/start.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "halftone/core/check.h"
#include "halftone/core/strings.h"

namespace halftone::testing {

Result Start(const std::string& program, const std::string& arguments) {
  Result run;
  const TempFolder folder;
  const std::string errors = folder / "stderr";
  const std::string command =
      Concat(HALFTONE_BINARY_DIR, "/", program, " ", arguments, " 2>", errors);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return run;
  char buffer[4096];
  size_t count = 0;
  while ((count = fread(buffer, 1, sizeof(buffer), pipe)) > 0) run.out.append(buffer, count);
  const int status = pclose(pipe);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  run.err = Contents(errors);
  run.output = run.out + run.err;
  return run;
}

bool Has(const Result& run, const std::string& text) {
  return run.output.find(text) != std::string::npos;
}

TempFolder::TempFolder()
    : path_((std::filesystem::temp_directory_path() / "halftone_XXXXXX").string()) {
  HT_CHECK(mkdtemp(path_.data()) != nullptr, "no temporary folder");
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::Write(const std::string& name, const std::string& contents) const {
  const std::string path = *this / name;
  std::ofstream(path, std::ios::binary) << contents;
  return path;
}

std::string Contents(const std::string& path) {
  std::ostringstream out;
  out << std::ifstream(path, std::ios::binary).rdbuf();
  return out.str();
}

}  // namespace halftone::testing
