#include "halftone/tests/distributed/job.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "halftone/core/check.h"
#include "halftone/core/strings.h"

namespace halftone::testing {
namespace {

// Root, more ranks than cores, and no binding, under which all ranks of several jobs would share a
// core; and, since few machines let one process read another's memory, copies through shared memory.
constexpr char kSettings[] =
    "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
    "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none "
    "OMPI_MCA_btl_vader_single_copy_mechanism=none OMPI_MCA_mpi_yield_when_idle=1 "
    "OMPI_MCA_plm_rsh_agent=false HALFTONE_NOTES=0";

}  // namespace

std::string WhyNoJobs() {
#ifdef HALFTONE_MPIEXEC
  return "";
#else
  return HALFTONE_WHY_NO_MPI;
#endif
}

std::string JobCommand(int ranks, const std::string& program, const std::string& arguments,
                       const std::string& settings) {
#ifdef HALFTONE_MPIEXEC
  constexpr char kMpiexec[] = HALFTONE_MPIEXEC;
#else
  constexpr char kMpiexec[] = "false";
#endif
  return Concat("env ", kSettings, " ", settings, " ", kMpiexec, " -n ", ranks, " ",
                HALFTONE_BINARY_DIR, "/", program, " ", arguments);
}

Result StartJob(int ranks, const std::string& program, const std::string& arguments,
                const std::string& settings) {
  const std::string command = JobCommand(ranks, program, arguments, settings) + " 2>&1";
  Result job;
  FILE* pipe = popen(command.c_str(), "r");
  HT_CHECK(pipe != nullptr, "no shell");
  char buffer[4096];
  size_t count = 0;
  while ((count = fread(buffer, 1, sizeof(buffer), pipe)) > 0) job.out.append(buffer, count);
  const int status = pclose(pipe);
  job.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  job.output = job.out;
  return job;
}

RunningJob::RunningJob(const std::string& command, const std::string& log) {
  pid_ = fork();
  HT_CHECK(pid_ >= 0, "fork");
  if (pid_ > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // mpirun ends its ranks then
  const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  dup2(out, STDOUT_FILENO);
  dup2(out, STDERR_FILENO);
  const std::string line = "exec " + command;
  execl("/bin/sh", "sh", "-c", line.c_str(), static_cast<char*>(nullptr));
  _exit(127);
}

RunningJob::~RunningJob() {
  if (pid_ <= 0) return;
  kill(pid_, SIGTERM);
  if (Wait(10).has_value()) return;
  kill(pid_, SIGKILL);
  Wait(10);
}

std::vector<pid_t> RunningJob::Ranks() const {
  std::vector<pid_t> ranks;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    // "123 (name) S parent ..."
    std::ifstream file(entry.path() / "stat");
    std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
    const size_t end = text.rfind(')');
    int parent = 0;
    char state = '?';
    if (end == std::string::npos ||
        std::sscanf(text.c_str() + end + 1, " %c %d", &state, &parent) != 2) {
      continue;
    }
    if (parent == pid_ && state != 'Z') ranks.push_back(std::stoi(name));
  }
  return ranks;
}

std::optional<int> RunningJob::Wait(double seconds) {
  for (int i = 0; i < seconds * 200; ++i) {
    int status = -1;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    }
    usleep(5000);
  }
  return std::nullopt;
}

}  // namespace halftone::testing
