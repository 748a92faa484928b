#include "halftone/tests/cuda_emulation/fiber.h"

#include <pthread.h>
#include <sys/mman.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#if !defined(__x86_64__)
#error "the context switch of the emulated device is written for x86-64"
#endif

// System V: the callee keeps rbx, rbp, r12 to r15; the rest is the caller's.
extern "C" void halftone_emulation_switch(void** save_stack_pointer, void* load_stack_pointer);
asm(R"(
.text
.globl halftone_emulation_switch
.type halftone_emulation_switch,@function
halftone_emulation_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size halftone_emulation_switch,.-halftone_emulation_switch
)");

namespace halftone::emulation {
namespace {

constexpr size_t kGuardBytes = 4096;
constexpr int kSavedRegisters = 6;
constexpr size_t kCacheLine = 64;
constexpr int kColours = 61;

}  // namespace

void Fiber::Create(Entry entry, int colour) {
  void* memory = mmap(nullptr, kStackBytes + kGuardBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || mprotect(memory, kGuardBytes, PROT_NONE) != 0) {
    std::perror("emulated CUDA device: stack of a thread");
    std::abort();
  }
  stack_ = static_cast<char*>(memory) + kGuardBytes;
  stack_bytes_ = kStackBytes;
  Restart(entry, colour);
}

void Fiber::Restart(Entry entry, int colour) {
  Unpoison(stack_, stack_bytes_);
  fake_stack_ = nullptr;
  uintptr_t top = reinterpret_cast<uintptr_t>(stack_) + stack_bytes_ - kCacheLine -
                  static_cast<size_t>(colour % kColours) * kCacheLine;
  top &= ~uintptr_t{15};
  void** slot = reinterpret_cast<void**>(top);
  // What `ret` of the switch finds: the entry, and above it where the entry would return to, which
  // also gives the entry the stack alignment of a called function.
  *--slot = nullptr;
  *--slot = reinterpret_cast<void*>(entry);
  for (int i = 0; i < kSavedRegisters; ++i) *--slot = nullptr;
  stack_pointer_ = slot;
}

void Fiber::AdoptThread() {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  pthread_getattr_np(pthread_self(), &attributes);
  pthread_attr_getstack(&attributes, &lowest, &stack_bytes_);
  pthread_attr_destroy(&attributes);
  stack_ = static_cast<char*>(lowest);
}

void Fiber::Switch(Fiber& from, Fiber& to) {
#if defined(HT_EMULATION_ASAN)
  __sanitizer_start_switch_fiber(&from.fake_stack_, to.stack_, to.stack_bytes_);
#endif
  halftone_emulation_switch(&from.stack_pointer_, to.stack_pointer_);
#if defined(HT_EMULATION_ASAN)
  __sanitizer_finish_switch_fiber(from.fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::Started() {
#if defined(HT_EMULATION_ASAN)
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
}

}  // namespace halftone::emulation
