#include "halftone/core/fork.h"

#include <pthread.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace halftone {
namespace {

// One at a time: only the forked thread has work for it. Never destroyed: programs end while its
// thread waits.
class Helper {
 public:
  // Throws std::system_error if the system refuses threads.
  Helper() {
    std::thread([this] { Serve(); }).detach();
  }

  absl::Status Run(const std::function<absl::Status()>& fn) {
    std::unique_lock<std::mutex> lock(mutex_);
    work_ = &fn;
    changed_.notify_all();
    changed_.wait(lock, [this] { return work_ == nullptr; });
    return std::move(result_);
  }

 private:
  [[noreturn]] void Serve() {
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return work_ != nullptr; });
      result_ = (*work_)();
      work_ = nullptr;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  const std::function<absl::Status()>* work_ = nullptr;
  absl::Status result_;
};

std::atomic<int> generation{0};
pthread_t forked_thread;   // valid from generation 1 on
Helper* helper = nullptr;  // used by the forked thread alone

void OnChild() {
  forked_thread = pthread_self();
  helper = nullptr;
  generation.fetch_add(1, std::memory_order_release);
}

}  // namespace

int ForkGeneration() {
  static const int registered = pthread_atfork(nullptr, nullptr, &OnChild);
  (void)registered;
  return generation.load(std::memory_order_acquire);
}

bool IsForkedThread() {
  return generation.load(std::memory_order_acquire) != 0 &&
         pthread_equal(pthread_self(), forked_thread) != 0;
}

absl::Status RunBesideForkedThread(const std::function<absl::Status()>& fn) {
  try {
    if (helper == nullptr) helper = new Helper();
  } catch (const std::system_error& error) {
    return ResourceExhausted("cannot start a thread after fork: ", error.what());
  }
  return helper->Run(fn);
}

}  // namespace halftone
