#include "halftone/tests/programs/start.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "halftone/core/check.h"
#include "halftone/core/strings.h"
#include "halftone/tests/support/temp_dir.h"

namespace halftone::testing {

Result Start(const std::string& program, const std::string& arguments, const std::string& before) {
  Result run;
  std::string errors = (std::filesystem::temp_directory_path() / "halftone_XXXXXX").string();
  const int fd = mkstemp(errors.data());
  HT_CHECK(fd >= 0, "no temporary file");
  close(fd);
  const std::string command =
      Concat(before, " ", HALFTONE_BINARY_DIR, "/", program, " ", arguments, " 2>", errors);
  FILE* pipe = popen(command.c_str(), "r");
  HT_CHECK(pipe != nullptr, "no shell");
  char buffer[4096];
  size_t count = 0;
  while ((count = fread(buffer, 1, sizeof(buffer), pipe)) > 0) run.out.append(buffer, count);
  const int status = pclose(pipe);
  run.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  run.err = Bytes(errors);
  unlink(errors.c_str());
  run.output = run.out + run.err;
  return run;
}

bool Has(const Result& run, const std::string& text) {
  return run.output.find(text) != std::string::npos;
}

}  // namespace halftone::testing
