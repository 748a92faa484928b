// Starts jobs of several processes by mpirun, on a machine of few cores and as any user.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "halftone/tests/programs/start.h"

namespace halftone::testing {

// Why there are none here; empty where there are.
std::string WhyNoJobs();

// <build>/<program> with `arguments`, a piece of shell, `ranks` times, after `settings` of the
// environment ("HALFTONE_DISTRIBUTED_TIMEOUT=3").
Result StartJob(int ranks, const std::string& program, const std::string& arguments = "",
                const std::string& settings = "");
// The command line that starts it.
std::string JobCommand(int ranks, const std::string& program, const std::string& arguments = "",
                       const std::string& settings = "");

// A job that runs beside the test, so that its ranks can be killed.
class RunningJob {
 public:
  // Runs a command line that JobCommand gave; its output goes to the file `log`.
  RunningJob(const std::string& command, const std::string& log);
  // Ends it.
  ~RunningJob();
  RunningJob(const RunningJob&) = delete;
  RunningJob& operator=(const RunningJob&) = delete;

  // The processes of its ranks, in any order; empty before they have started or once they have ended.
  std::vector<pid_t> Ranks() const;
  // The exit status, -1 after a signal; nullopt if it has not ended within this time.
  std::optional<int> Wait(double seconds);

 private:
  pid_t pid_ = -1;
};

}  // namespace halftone::testing
