// A program that runs beside the test, so that it can be killed.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace halftone::testing {

class ChildProcess {
 public:
  // Starts <build>/<program>; standard output and error go to the file `log`. `max_file_bytes` > 0:
  // larger files cannot be written, as on a full disk. The child dies with the test.
  ChildProcess(const std::string& program, const std::vector<std::string>& arguments,
               const std::string& log, int64_t max_file_bytes = 0);
  // Ends it, as kill -9 does.
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // The exit status, after the end; -1 if a signal ended it.
  int Wait();
  // kill -9, then the exit status if it had ended by itself before, else -1.
  int Kill();

 private:
  pid_t pid_ = -1;
};

}  // namespace halftone::testing
