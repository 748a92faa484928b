#include "halftone/core/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <thread>

#include "halftone/core/strings.h"

namespace halftone {
namespace {

// A machine may have more CPUs than cpu_set_t counts: the system then refuses the small set.
int CpusOfAffinity() {
  constexpr int kMostCpus = 1 << 16;
  for (int cpus = CPU_SETSIZE; cpus <= kMostCpus; cpus *= 2) {
    const std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set(
        CPU_ALLOC(cpus), [](cpu_set_t* allocated) { CPU_FREE(allocated); });
    if (set == nullptr) break;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    if (sched_getaffinity(0, bytes, set.get()) == 0) return CPU_COUNT_S(bytes, set.get());
  }
  return static_cast<int>(std::thread::hardware_concurrency());
}

void Lower(std::optional<double>* quota, double microseconds, double period) {
  if (!(microseconds > 0) || !(period > 0)) return;
  *quota = std::min(quota->value_or(microseconds / period), microseconds / period);
}

// Of one group; version 2 has "max 100000" or "150000 100000" in one file, version 1 two files.
void LowerByGroup(const std::string& folder, std::optional<double>* quota) {
  double microseconds = 0;
  double period = 0;
  std::ifstream both(folder + "/cpu.max");
  // "max" is no number: no limit.
  if (both >> microseconds >> period) Lower(quota, microseconds, period);
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us");
  std::ifstream period_file(folder + "/cpu.cfs_period_us");
  // -1: no limit.
  if (quota_file >> microseconds && period_file >> period) Lower(quota, microseconds, period);
}

// Of the group `path` below `mount`, and of those above it.
void LowerByPath(const std::string& mount, std::string path, std::optional<double>* quota) {
  while (!path.empty() && path != "/") {
    LowerByGroup(mount + path, quota);
    path.erase(path.rfind('/'));
  }
  LowerByGroup(mount, quota);
}

}  // namespace

std::optional<double> CpuQuota(const std::string& cgroup_file, const std::string& mount) {
  std::optional<double> quota;
  std::ifstream lines(cgroup_file);
  // "<number>:<controllers, separated by commas>:/<path>"; version 2 has no controllers.
  for (std::string line; std::getline(lines, line);) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (path.empty() || path[0] != '/') continue;
    if (controllers.empty()) {
      LowerByPath(mount, path, &quota);
    } else if (("," + controllers + ",").find(",cpu,") != std::string::npos) {
      LowerByPath(mount + "/" + controllers, path, &quota);
      if (controllers != "cpu") LowerByPath(mount + "/cpu", path, &quota);
    }
  }
  return quota;
}

std::string NoteOnThreads(int count) {
  const int cpus = AvailableCpus();
  if (count <= cpus) return "";
  return Concat(count, " threads on ", cpus, cpus == 1 ? " CPU" : " CPUs",
                " wait for each other: ", cpus, " would be faster");
}

int AvailableCpus() {
  static const int cpus = [] {
    const std::optional<double> quota = CpuQuota("/proc/self/cgroup", "/sys/fs/cgroup");
    const int affinity = CpusOfAffinity();
    const double most = std::min<double>(affinity, quota.value_or(affinity));
    return std::max(static_cast<int>(most), 1);
  }();
  return cpus;
}

}  // namespace halftone
