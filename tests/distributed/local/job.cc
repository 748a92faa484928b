// local_job RANKS SECONDS MODULE PROGRAM [ARGUMENT...]: what mpirun -n RANKS is, for jobs of tests on this
// machine by the transport in MODULE (transport.cc). Its status is the first rank's that fails, which ends the
// others; 124 after SECONDS.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 5) {
    std::fprintf(stderr, "local_job: expected RANKS SECONDS MODULE PROGRAM [ARGUMENT...]\n");
    return 2;
  }
  const int ranks = std::atoi(argv[1]), seconds = std::atoi(argv[2]);
  std::string folder =
      (std::filesystem::temp_directory_path() / "halftone_local_job_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) {
    std::perror("local_job: no folder");
    return 2;
  }
  setenv("HALFTONE_LOCAL_JOB", folder.c_str(), 1);
  setenv("HALFTONE_MPI_LIBRARY", argv[3], 1);
  setenv("OMPI_COMM_WORLD_SIZE", argv[1], 1);
  std::vector<pid_t> running;
  for (int rank = 0; rank < ranks; ++rank) {
    setenv("OMPI_COMM_WORLD_RANK", std::to_string(rank).c_str(), 1);
    const pid_t child = fork();
    if (child == 0) {
      execv(argv[4], argv + 4);
      std::perror(argv[4]);
      _exit(127);
    }
    running.push_back(child);
  }
  int result = 0;
  constexpr int kLooksASecond = 100;
  for (int looks = 0; !running.empty(); ++looks) {
    for (size_t i = 0; i < running.size();) {
      int status = 0;
      if (waitpid(running[i], &status, WNOHANG) != running[i]) {
        ++i;
        continue;
      }
      running.erase(running.begin() + static_cast<std::ptrdiff_t>(i));
      const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
      if (result == 0) result = code;
    }
    if (looks > seconds * kLooksASecond && result == 0) {
      std::fprintf(stderr, "local_job: not done after %d s\n", seconds);
      result = 124;
    }
    if (result != 0) {
      for (const pid_t child : running) kill(child, SIGKILL);
    }
    usleep(1000000 / kLooksASecond);
  }
  std::filesystem::remove_all(folder);
  return result;
}
