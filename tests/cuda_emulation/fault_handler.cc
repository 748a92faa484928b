#include "halftone/tests/cuda_emulation/fault_handler.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "halftone/tests/cuda_emulation/engine.h"
#include "halftone/tests/cuda_emulation/runtime.h"

namespace halftone::emulation {
namespace {

constexpr size_t kHandlerStack = size_t{64} * 1024;

// Not async-signal-safe: it allocates and prints. The process is lost, and a wrong access of device
// code does not come from within the allocator.
void TellOfFault(int signal, siginfo_t* info, void*) {
  std::signal(signal, SIG_DFL);  // the access is repeated on return and ends the process
  const Runtime& r = GetRuntime();
  const std::string thread = RunningThread();
  const std::string where = r.memory.Contains(info->si_addr)
                                ? " touched " + r.memory.Describe(info->si_addr)
                                : " touched memory that is not the device's";
  std::fprintf(stderr, "emulated CUDA device: %s%s (%p)\n",
               thread.empty() ? "host code" : ("device code of " + thread).c_str(), where.c_str(),
               info->si_addr);
}

}  // namespace

void InstallFaultHandler() {
  if (kAddressSanitizer || kThreadSanitizer) return;
  struct sigaction action = {};
  action.sa_sigaction = TellOfFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

void PrepareThreadForFaults() {
  if (kAddressSanitizer || kThreadSanitizer) return;
  static thread_local std::unique_ptr<char[]> stack;
  if (stack != nullptr) return;
  stack = std::make_unique<char[]>(kHandlerStack);
  stack_t description = {};
  description.ss_sp = stack.get();
  description.ss_size = kHandlerStack;
  sigaltstack(&description, nullptr);
}

}  // namespace halftone::emulation
