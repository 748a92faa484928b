// The memory that the processes of an emulated NCCL job share: who is there, and what each gives to the
// reduction that it makes next.
//
// 1. Reductions of a communicator are numbered, by each rank in the order in which its device comes to them.
// 2. A rank writes its part of reduction n once all have taken theirs of n - 1, and takes it once all have
//    written: so nobody overwrites what another one still reads.
#pragma once

#include <nccl.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace halftone::emulation {

inline constexpr int kMaxRanks = 8;
inline constexpr size_t kPartBytes = size_t{16} << 20;  // of one rank's part of a reduction

// What a reduction gives: the sum to all ranks; to one; or what one rank has to all. All three are reductions here.
enum class Collective : int32_t { kAllReduce, kReduce, kBroadcast };

// What all ranks must say alike of a reduction.
struct ReductionTerms {
  uint64_t count;
  int32_t dtype, op;
  Collective collective = Collective::kAllReduce;
  int32_t root = 0;  // of the last two
  friend bool operator==(const ReductionTerms&, const ReductionTerms&) = default;
};

struct SharedRank {
  std::atomic<int32_t> joined;  // 1 and the number of its device; 0: not yet
  std::atomic<int32_t> ranks;   // as it was told
  std::atomic<int32_t> finalized;
  std::atomic<uint64_t> written, taken;  // reductions
  ReductionTerms terms;
};

struct SharedJob {
  std::atomic<int32_t> aborted;
  SharedRank ranks[kMaxRanks];
};

// A mapping of the memory of one job.
class JobMemory {
 public:
  // Creates the memory, and gives its name.
  static bool Create(std::string* name);
  // Null: there is none of this name.
  static std::unique_ptr<JobMemory> Map(const std::string& name);
  ~JobMemory();
  JobMemory(const JobMemory&) = delete;
  JobMemory& operator=(const JobMemory&) = delete;

  SharedJob& job() { return *static_cast<SharedJob*>(address_); }
  char* Part(int rank);
  // Nobody can map it any more.
  void RemoveName();

 private:
  JobMemory(std::string name, void* address) : name_(std::move(name)), address_(address) {}
  std::string name_;
  void* address_;
};

}  // namespace halftone::emulation
