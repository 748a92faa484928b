#include "halftone/distributed/mpi_communicator.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/alloc_counter.h"
#include "halftone/core/module_file.h"
#include "halftone/distributed/transport.h"

namespace halftone::distributed {
namespace {

constexpr char kLibrary[] = "libhalftone_mpi.so";
constexpr char kVariable[] = "HALFTONE_MPI_LIBRARY";

absl::StatusOr<const HalftoneTransport*> LoadTransport() {
  const char* const named = std::getenv(kVariable);
  const bool is_named = named != nullptr && named[0] != '\0';
  const std::string file = is_named ? named : FindModule(kLibrary);
  // Global: the parts of an MPI that it loads itself find their symbols so.
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const char* const error = dlerror();
    const std::string reason = error == nullptr ? file : error;
    if (!is_named &&
        reason.rfind(Concat(kLibrary, ": cannot open shared object file: No such"), 0) == 0) {
      return Unimplemented("MPI is not installed: no ", kLibrary,
                           " beside the program, on its run path or among the system's libraries; "
                           "expected a Halftone that was built where MPI is (libopenmpi-dev)");
    }
    return FailedPrecondition("cannot load the MPI module: ", reason,
                              is_named ? Concat(" (named by ", kVariable, ")") : "");
  }
  void* const entry = dlsym(library, kTransportEntry);
  if (entry == nullptr) {
    return FailedPrecondition("cannot load the MPI module: ", file, " has no symbol ",
                              kTransportEntry);
  }
  const HalftoneTransport* const transport = reinterpret_cast<HalftoneTransportEntry*>(entry)();
  if (transport->abi != kTransportAbi) {
    return FailedPrecondition("cannot load the MPI module: ", file, " is of form ", transport->abi,
                              "; expected ", kTransportAbi);
  }
  return transport;
}

absl::Status ErrorOf(const HalftoneTransport& transport, int error) {
  if (error == 0) return absl::OkStatus();
  char text[512] = "";
  transport.error_text(error, text, sizeof(text));
  return absl::UnavailableError(Concat(transport.name, ": ", text));
}

class MpiRound : public Round {
 public:
  MpiRound(const HalftoneTransport& transport, int rank, int size)
      : transport_(transport), rank_(rank) {
    Reserve(2 * static_cast<size_t>(size));
  }

  absl::Status Start(absl::Span<const Part> parts, int tag) override {
    count_ = open_ = 0;
    size_t needed = 0;
    for (const Part& part : parts) needed += Pieces(part.send_bytes) + Pieces(part.receive_bytes);
    Reserve(needed);
    const AllocationPause pause;
    // Receives first, so that what comes finds its place.
    const auto ranks = static_cast<int>(parts.size());
    for (int r = 0; r < ranks; ++r) {
      const Part& part = parts[static_cast<size_t>(r)];
      if (r == rank_) continue;
      for (size_t at = 0; at < part.receive_bytes; at += transport_.max_message) {
        const size_t bytes = std::min(transport_.max_message, part.receive_bytes - at);
        HT_RETURN_IF_ERROR(
            ErrorOf(transport_, transport_.receive(static_cast<char*>(part.receive) + at, bytes, r,
                                                   tag, Request(count_))));
        from_[count_++] = r;
      }
    }
    // Each rank begins with the one behind it: not all with the same.
    for (int i = 1; i < ranks; ++i) {
      const int r = (rank_ + i) % ranks;
      const Part& part = parts[static_cast<size_t>(r)];
      for (size_t at = 0; at < part.send_bytes; at += transport_.max_message) {
        const size_t bytes = std::min(transport_.max_message, part.send_bytes - at);
        HT_RETURN_IF_ERROR(
            ErrorOf(transport_, transport_.send(static_cast<const char*>(part.send) + at, bytes, r,
                                                tag, Request(count_))));
        from_[count_++] = -1;
      }
    }
    open_ = count_;
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Test() override {
    const AllocationPause pause;
    // Those that are done go to the end.
    for (size_t i = 0; i < open_;) {
      int done = 0;
      HT_RETURN_IF_ERROR(ErrorOf(transport_, transport_.test(Request(i), &done)));
      if (done == 0) {
        ++i;
      } else if (--open_ != i) {
        std::memcpy(Request(i), Request(open_), transport_.request_bytes);
        from_[i] = from_[open_];
      }
    }
    return open_ == 0;
  }

  int Missing() const override {
    int missing = -1;
    for (size_t i = 0; i < open_; ++i) {
      if (from_[i] >= 0 && (missing < 0 || from_[i] < missing)) missing = from_[i];
    }
    return missing;
  }

 private:
  size_t Pieces(size_t bytes) const {
    return (bytes + transport_.max_message - 1) / transport_.max_message;
  }
  void Reserve(size_t count) {
    if (from_.size() >= count) return;
    from_.resize(count);
    requests_.resize((count * transport_.request_bytes + sizeof(std::max_align_t) - 1) /
                     sizeof(std::max_align_t));
  }
  void* Request(size_t i) {
    return reinterpret_cast<char*>(requests_.data()) + i * transport_.request_bytes;
  }

  const HalftoneTransport& transport_;
  const int rank_;
  size_t count_ = 0, open_ = 0;
  std::vector<int> from_;  // of each request: the rank it waits for; -1: it sends
  std::vector<std::max_align_t> requests_;
};

class MpiCommunicator : public Communicator {
 public:
  MpiCommunicator(const HalftoneTransport& transport, int rank, int size, int local_rank,
                  int local_size, double timeout_seconds)
      : Communicator(rank, size, local_rank, local_size, timeout_seconds), transport_(transport) {}

  std::unique_ptr<Round> NewRound() override {
    return std::make_unique<MpiRound>(transport_, rank(), size());
  }
  void Leave(int exit_status) {
    if (exit_status == 0 && status().ok()) {
      transport_.finalize();
    } else {
      transport_.abort(exit_status == 0 ? 1 : exit_status);
    }
  }

 private:
  const HalftoneTransport& transport_;
};

// After main, while everything that MPI needs is still there.
void AtExit(int exit_status, void* communicator) {
  static_cast<MpiCommunicator*>(communicator)->Leave(exit_status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Communicator>> JoinMpi(double timeout_seconds) {
  HT_ASSIGN_OR_RETURN(const HalftoneTransport* const transport, LoadTransport());
  int rank = 0, size = 1, local_rank = 0, local_size = 1;
  HT_RETURN_IF_ERROR(ErrorOf(*transport, transport->init(&rank, &size, &local_rank, &local_size)));
  auto joined = std::make_unique<MpiCommunicator>(*transport, rank, size, local_rank, local_size,
                                                  timeout_seconds);
  on_exit(&AtExit, joined.get());
  return std::unique_ptr<Communicator>(std::move(joined));
}

}  // namespace halftone::distributed
