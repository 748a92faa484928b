#include "halftone/tests/programs/child_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>

#include "halftone/core/check.h"

namespace halftone::testing {

ChildProcess::ChildProcess(const std::string& program, const std::vector<std::string>& arguments,
                           const std::string& log, int64_t max_file_bytes) {
  const std::string path = std::string(HALFTONE_BINARY_DIR) + "/" + program;
  std::vector<char*> argv = {const_cast<char*>(path.c_str())};
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  pid_ = fork();
  HT_CHECK(pid_ >= 0, "fork");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  setenv("HALFTONE_NOTES", "0", 1);  // on standard error
  if (max_file_bytes > 0) {
    const auto limit = static_cast<rlim_t>(max_file_bytes);
    const rlimit limits = {limit, limit};
    setrlimit(RLIMIT_FSIZE, &limits);
    std::signal(SIGXFSZ, SIG_DFL);  // as in a user's shell: ignored, it would stay so after exec
  }
  execv(path.c_str(), argv.data());
  _exit(127);
}

ChildProcess::~ChildProcess() {
  if (pid_ > 0) Kill();
}

int ChildProcess::Wait() {
  int status = -1;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int ChildProcess::Kill() {
  kill(pid_, SIGKILL);
  return Wait();
}

}  // namespace halftone::testing
