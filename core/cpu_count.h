// How many CPUs this process may use: threads beyond that wait for each other.
#pragma once

#include <optional>
#include <string>

namespace halftone {

// The CPUs of the process's affinity mask, at most its CPU quota rounded down, at least 1. Read at
// the first call.
int AvailableCpus();

// What a program should say of `count` threads: "64 threads on 2 CPUs wait for each other: ...".
// Empty if there are CPUs enough.
std::string NoteOnThreads(int count);

// The smallest CPU quota of the control groups that a process is in, in CPUs (1.5: half as much
// again as one CPU); nullopt if none limits it. Both versions of control groups.
//
// `cgroup_file` is "/proc/self/cgroup", `mount` "/sys/fs/cgroup". Inside a container the path that
// the file names may be the host's: groups that cannot be read limit nothing, the root is always
// asked.
std::optional<double> CpuQuota(const std::string& cgroup_file, const std::string& mount);

}  // namespace halftone
