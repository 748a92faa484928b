#include "halftone/tests/cuda_emulation/nccl_job.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

namespace halftone::emulation {
namespace {

constexpr size_t kJobBytes = (sizeof(SharedJob) + 4095) / 4096 * 4096;
constexpr size_t kAllBytes =
    kJobBytes + kMaxRanks * kPartBytes;  // pages come when they are written

}  // namespace

bool JobMemory::Create(std::string* name) {
  static std::atomic<int> count{0};
  *name = "/halftone_nccl_" + std::to_string(getpid()) + "_" + std::to_string(count++);
  const int file = shm_open(name->c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  if (file < 0) return false;
  const bool grown = ftruncate(file, static_cast<off_t>(kAllBytes)) == 0;
  close(file);
  return grown;
}

std::unique_ptr<JobMemory> JobMemory::Map(const std::string& name) {
  const int file = shm_open(name.c_str(), O_RDWR, 0);
  if (file < 0) return nullptr;
  void* const address = mmap(nullptr, kAllBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (address == MAP_FAILED) return nullptr;
  return std::unique_ptr<JobMemory>(new JobMemory(name, address));
}

JobMemory::~JobMemory() {
  RemoveName();
  munmap(address_, kAllBytes);
}

char* JobMemory::Part(int rank) {
  return static_cast<char*>(address_) + kJobBytes + static_cast<size_t>(rank) * kPartBytes;
}

void JobMemory::RemoveName() { shm_unlink(std::exchange(name_, "/").c_str()); }

}  // namespace halftone::emulation
