#include "halftone/distributed/distributed.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/cpu_count.h"
#include "halftone/core/threads.h"
#include "halftone/distributed/communicator.h"
#include "halftone/distributed/mpi_communicator.h"

namespace halftone::distributed {
namespace {

constexpr char kTimeout[] = "HALFTONE_DISTRIBUTED_TIMEOUT";

// What launchers tell a process: Open MPI, Slurm and others by PMIx, MPICH and Intel's by PMI.
constexpr struct {
  const char* rank;
  const char* size;  // null: not told
} kLaunchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
                  {"PMI_RANK", "PMI_SIZE"},
                  {"PMIX_RANK", nullptr}};

struct Launch {
  bool by_launcher = false;
  std::string rank, size = "1";
};

Launch ReadLaunch() {
  for (const auto& launcher : kLaunchers) {
    const char* const rank = std::getenv(launcher.rank);
    if (rank == nullptr) continue;
    const char* const size = launcher.size == nullptr ? nullptr : std::getenv(launcher.size);
    return {true, rank, size == nullptr ? "several" : size};
  }
  return {};
}

class OfOne : public Communicator {
 public:
  OfOne() : Communicator(0, 1, 0, 1, 1) {}
  std::unique_ptr<Round> NewRound() override { return std::make_unique<NoMessages>(); }

 private:
  class NoMessages : public Round {
    absl::Status Start(absl::Span<const Part>, int) override { return absl::OkStatus(); }
    absl::StatusOr<bool> Test() override { return true; }
    int Missing() const override { return -1; }
  };
};

// For the life of the process: it leaves the job after main.
struct Job {
  std::unique_ptr<Communicator> communicator = std::make_unique<OfOne>();
  bool is_initialized = false;
};

Job& TheJob() {
  static auto* const job = new Job;
  return *job;
}

absl::StatusOr<double> Timeout(const InitOptions& options) {
  double seconds = options.timeout_seconds;
  std::string source = "timeout_seconds";
  const char* const text = std::getenv(kTimeout);
  if (text != nullptr && text[0] != '\0') {
    char* end = nullptr;
    seconds = std::strtod(text, &end);
    if (*end != '\0') seconds = -1;
    source = Concat(kTimeout, "=", text);
  }
  if (seconds > 0 && std::isfinite(seconds)) return seconds;
  return InvalidArgument("distributed::Init: ", source, " is ", seconds,
                         "; expected a number of seconds above 0");
}

// Ranks that may use the same CPUs share them: each takes its part of them as threads.
absl::Status ShareCpus(Communicator& world) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  sched_getaffinity(0, sizeof(mask), &mask);
  char host[256] = "";
  gethostname(host, sizeof(host) - 1);
  std::string own(host);
  own.append(reinterpret_cast<const char*>(&mask), sizeof(mask));
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all, world.Exchange(own, "init"));
  const auto sharers = static_cast<int>(std::count(all.begin(), all.end(), own));
  if (sharers > 1) SetNumThreads(std::max(1, AvailableCpus() / sharers));
  return absl::OkStatus();
}

}  // namespace

absl::Status Init(const InitOptions& options) {
  Job& job = TheJob();
  if (job.is_initialized) {
    return FailedPrecondition("distributed::Init was called before; expected once");
  }
  HT_ASSIGN_OR_RETURN(const double timeout, Timeout(options));
  const Launch launch = ReadLaunch();
  if (launch.by_launcher) {
    auto joined = JoinMpi(timeout);
    if (!joined.ok() && absl::IsUnimplemented(joined.status()) && launch.size == "1") {
      // Alone, whoever started it: nothing is missing.
    } else if (!joined.ok()) {
      return Annotate(joined.status(),
                      Concat("distributed::Init: this process was started as rank ", launch.rank,
                             " of ", launch.size, ": "));
    } else {
      job.communicator = *std::move(joined);
      HT_RETURN_IF_ERROR(ShareCpus(*job.communicator));
    }
  }
  job.is_initialized = true;
  return absl::OkStatus();
}

bool IsInitialized() { return TheJob().is_initialized; }
int Rank() { return World().rank(); }
int Size() { return World().size(); }
int LocalRank() { return World().local_rank(); }

Device DeviceOfRank(Device::Kind kind) {
  return {kind, kind == Device::Kind::kCuda ? LocalRank() : 0};
}

absl::Status Agree(const absl::Status& own) { return World().Agree(own, "agree"); }
absl::StatusOr<double> Sum(double own) {
  std::string bytes(sizeof(own), '\0');
  std::memcpy(bytes.data(), &own, sizeof(own));
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all, World().Exchange(bytes, "sum"));
  double sum = 0;
  for (const std::string& one : all) {
    double term = 0;
    std::memcpy(&term, one.data(), std::min(one.size(), sizeof(term)));
    sum += term;
  }
  return sum;
}
absl::Status Barrier() { return World().Barrier("barrier"); }

bool IsForgotten() {
  const Launch launch = ReadLaunch();
  return !IsInitialized() && launch.by_launcher && launch.size != "1";
}

Communicator& World() { return *TheJob().communicator; }

}  // namespace halftone::distributed
