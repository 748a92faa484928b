// engine.cpp - compiled WITHOUT -fsanitize=thread even in the TSan build (its own state is not device state).
#include "halftone/tests/cuda_emulation/engine.h"
#include <pthread.h>
#include <sys/mman.h>
#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#if defined(__SANITIZE_ADDRESS__)
#define HT_EMULATION_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HT_EMULATION_ASAN 1
#endif
#endif
#if HT_EMULATION_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(HT_EMULATION_TSAN)  // set by the build: kernels are instrumented, this file is not
extern "C" {
void* __tsan_get_current_fiber();
void* __tsan_create_fiber(unsigned flags);
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* addr);
void __tsan_release(void* addr);
}
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;

namespace halftone::emulation {
std::uint64_t g_block_serial = 0;
namespace {
constexpr int kMaxThreads = 1024;
constexpr std::size_t kStack =
#if HT_EMULATION_ASAN || defined(HT_EMULATION_TSAN)
    256 * 1024;
#else
    64 * 1024;
#endif
constexpr std::size_t kArena = 256 * 1024;  // shared memory of one block, red zones included
constexpr int kArenas =
#if defined(HT_EMULATION_TSAN)
    64;
#else
    1;
#endif

enum class St : std::uint8_t { kNew, kReady, kBlock, kWarp, kDone };
struct Fiber {
  void* sp = nullptr;
  char* lo = nullptr;
  std::size_t size = kStack;
  void* fake = nullptr;
};
struct Lane {
  std::uint64_t value, result;
  unsigned mask;
  int src;
  WarpOp op;
};
struct Thread {
  Fiber* fiber;
  St st;
  int bar_result, bar_line, bar_pred;
  uint3 idx;
};
struct Engine {
  Thread th[kMaxThreads];
  Lane lane[kMaxThreads];
  unsigned warp_waiting[32], warp_live[32];
  std::uint64_t ready[16];
  int start_order[kMaxThreads];
  int n = 0, started = 0, done = 0, at_barrier = 0, cur = -1, nready = 0;
  BarOp bar_op{};
  Fiber host;
  Fiber* running = nullptr;
  std::vector<std::unique_ptr<Fiber>> all;
  std::vector<Fiber*> pool;
  const std::function<void()>* fn = nullptr;
  bool failed = false;
  char text[512];
  unsigned char* arena = nullptr;
  std::size_t arena_used = 0, dyn = 0, static_used = 0;
  void* dyn_ptr = nullptr;
  int arena_no = 0;
  std::uint64_t rng = 88172645463325252ull;
  std::uint64_t Rand() { rng ^= rng << 13; rng ^= rng >> 7; rng ^= rng << 17; return rng; }
  Stats stats;
  Options opt;
#if defined(HT_EMULATION_TSAN)
  void* host_tsan = nullptr;
  void* tsan[2 * kMaxThreads] = {};  // two sets, so that a thread of one block is not taken for its namesake in the next
  int tsan_set = 0;
  char grid_begin, grid_end, bar_sync[2], warp_sync[32][2];
  int bar_gen = 0, warp_gen[32] = {};
#endif
};
Engine& E() { static Engine* e = new Engine; return *e; }
std::recursive_mutex g_mu;

// ---- context switch: System V x86-64
extern "C" void ht_emulation_switch(void** save, void* load);
asm(R"(
.text
.globl ht_emulation_switch
.type ht_emulation_switch,@function
ht_emulation_switch:
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
.size ht_emulation_switch,.-ht_emulation_switch
)");

inline void SetThread(Engine& e, int t) {
  e.cur = t;
  ::threadIdx = e.th[t].idx;
#if defined(HT_EMULATION_TSAN)
  __tsan_switch_to_fiber(e.tsan[e.tsan_set + t], 1);
#endif
}

void SwitchTo(Engine& e, Fiber* to) {
  Fiber* from = e.running;
  if (from == to) return;
  e.running = to;
  ++e.stats.switches;
#if HT_EMULATION_ASAN
  __sanitizer_start_switch_fiber(&from->fake, to->lo, to->size);
#endif
  ht_emulation_switch(&from->sp, to->sp);
#if HT_EMULATION_ASAN
  const void* old_lo; std::size_t old_size;
  __sanitizer_finish_switch_fiber(from->fake, &old_lo, &old_size);
#endif
}

[[noreturn]] void FiberMain();
void Prepare(Fiber* f, int colour) {
#if HT_EMULATION_ASAN
  __asan_unpoison_memory_region(f->lo, kStack);
  f->fake = nullptr;
#endif
  // Stack tops at different cache sets: all stacks have the same page offset otherwise.
  auto top = reinterpret_cast<std::uintptr_t>(f->lo) + kStack - 64 - std::size_t(colour % 61) * 64;
  top &= ~std::uintptr_t(15);
  auto* s = reinterpret_cast<void**>(top);
  *--s = nullptr;                              // return address of FiberMain (never used); keeps rsp % 16 == 8 at entry
  *--s = reinterpret_cast<void*>(&FiberMain);  // popped by ret
  for (int i = 0; i < 6; ++i) *--s = nullptr;  // rbp rbx r12-r15
  f->sp = s;
}
void NewFiber(Engine& e) {
  auto f = std::make_unique<Fiber>();
  char* m = static_cast<char*>(mmap(nullptr, kStack + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (m == MAP_FAILED) { std::perror("emu: mmap"); std::abort(); }
  mprotect(m, 4096, PROT_NONE);  // stack overflow faults
  f->lo = m + 4096;
  Prepare(f.get(), int(e.all.size()));
  e.pool.push_back(f.get());
  e.all.push_back(std::move(f));
}
Fiber* TakeFiber(Engine& e) {
#if defined(HT_EMULATION_TSAN)  // one stack per thread index: a stack that changes hands looks like a race
  const std::size_t want = std::size_t(e.tsan_set + e.start_order[e.started]);
  ++e.stats.fibers_started;
  return e.all[want].get();
#endif
  if (e.pool.empty()) NewFiber(e);
  Fiber* f = e.pool.back();
  e.pool.pop_back();
  ++e.stats.fibers_started;
  return f;
}
inline void MakeReady(Engine& e, int t) { e.th[t].st = St::kReady; e.ready[t >> 6] |= 1ull << (t & 63); ++e.nready; }
int PickReady(Engine& e) {
  if (e.nready == 0) return -1;
  int t = -1;
  if (e.opt.order == Order::kRandom) {
    int k = int(e.Rand() % std::uint64_t(e.nready));
    for (int w = 0;; ++w) {
      int c = __builtin_popcountll(e.ready[w]);
      if (k < c) { std::uint64_t b = e.ready[w]; while (k--) b &= b - 1; t = w * 64 + __builtin_ctzll(b); break; }
      k -= c;
    }
  } else if (e.opt.order == Order::kReverse) {
    for (int w = 15; w >= 0; --w) if (e.ready[w]) { t = w * 64 + 63 - __builtin_clzll(e.ready[w]); break; }
  } else {  // next after the current one, round robin
    const int c = (e.cur + 1) & 1023;
    int w = c >> 6;
    std::uint64_t b = e.ready[w] & (~0ull << (c & 63));
    for (int i = 0; b == 0; ++i) { w = (w + 1) & 15; b = e.ready[w]; }
    t = w * 64 + __builtin_ctzll(b);
  }
  e.ready[t >> 6] &= ~(1ull << (t & 63));
  --e.nready;
  return t;
}

// The current thread cannot go on: run another one, return when it is this one's turn again.
void Block(Engine& e) {
  const int self = e.cur;
  const bool prefer_new = e.opt.order == Order::kRandom && e.started < e.n && (e.Rand() & 1);
  int t = prefer_new ? -1 : PickReady(e);
  if (t >= 0) {
    SetThread(e, t);
    SwitchTo(e, e.th[t].fiber);
  } else if (e.started < e.n) {
    SwitchTo(e, TakeFiber(e));
  } else if (e.nready != 0) {
    t = PickReady(e); SetThread(e, t); SwitchTo(e, e.th[t].fiber);
  } else {
    SwitchTo(e, &e.host);  // nothing can run: the host side tells why
  }
  (void)self;
}

void ReleaseBarrier(Engine& e) {
  int acc = e.bar_op == BarOp::kAnd ? 1 : 0, line = -1;
  for (int t = 0; t < e.n; ++t) {
    Thread& h = e.th[t];
    if (h.st != St::kBlock) continue;
    if (e.bar_op == BarOp::kOr) acc |= h.bar_pred != 0;
    if (e.bar_op == BarOp::kAnd) acc &= h.bar_pred != 0;
    if (e.bar_op == BarOp::kCount) acc += h.bar_pred != 0;
    if (e.opt.strict_barriers && line != -1 && line != h.bar_line)
      Fail("threads of one block wait at different __syncthreads(): line %d and line %d (block %u,%u,%u)", line, h.bar_line, blockIdx.x, blockIdx.y, blockIdx.z);
    line = h.bar_line;
  }
  if (e.opt.strict_barriers && e.done != 0)
    Fail("__syncthreads() at line %d reached by %d of %d threads, the others have exited (block %u,%u,%u)", line, e.at_barrier, e.n, blockIdx.x, blockIdx.y, blockIdx.z);
  for (int t = 0; t < e.n; ++t)
    if (e.th[t].st == St::kBlock) { e.th[t].bar_result = acc; MakeReady(e, t); }
  e.at_barrier = 0;
#if defined(HT_EMULATION_TSAN)
  ++e.bar_gen;
#endif
}

// Completes the collective of lane `l` of warp `w` if every live lane of its mask has come.
bool TryWarp(Engine& e, int w, unsigned mask) {
  const unsigned m = mask & e.warp_live[w];
  if ((e.warp_waiting[w] & m) != m) return false;
  const int base = w * 32, first = __builtin_ctz(m);
  std::uint64_t ballot = 0;
  for (unsigned b = m; b != 0; b &= b - 1) {
    const Lane& x = e.lane[base + __builtin_ctz(b)];
    if (x.mask != mask || x.op != e.lane[base + first].op)
      Fail("warp %d: lanes disagree on a collective: lane %d has mask %08x, lane %d has mask %08x", w, first, mask, __builtin_ctz(b), x.mask);
    if (x.value != 0 && x.op == WarpOp::kBallot) ballot |= 1ull << __builtin_ctz(b);
  }
  for (unsigned b = m; b != 0; b &= b - 1) {
    const int l = __builtin_ctz(b);
    Lane& x = e.lane[base + l];
    if (x.op == WarpOp::kShuffle) {
      if (!((m >> x.src) & 1)) Fail("warp %d lane %d: shuffle reads lane %d, which is not in mask %08x or has exited", w, l, x.src, mask);
      x.result = e.lane[base + x.src].value;
    } else {
      x.result = ballot;
    }
    MakeReady(e, base + l);
  }
  e.warp_waiting[w] &= ~m;
#if defined(HT_EMULATION_TSAN)
  ++e.warp_gen[w];
#endif
  return true;
}

void OnExit(Engine& e, int t) {
  e.th[t].st = St::kDone;
  ++e.done;
  const int w = t >> 5;
  e.warp_live[w] &= ~(1u << (t & 31));
  if (e.warp_waiting[w] != 0) TryWarp(e, w, e.lane[w * 32 + __builtin_ctz(e.warp_waiting[w])].mask);
  if (e.at_barrier != 0 && e.at_barrier == e.n - e.done) ReleaseBarrier(e);
}

void FiberMain() {
  Engine& e = E();
#if HT_EMULATION_ASAN
  { const void* lo; std::size_t sz; __sanitizer_finish_switch_fiber(nullptr, &lo, &sz); (void)sz; }
#endif
  Fiber* const self = e.running;
  for (;;) {
    while (e.started < e.n) {  // no barrier, no switch: threads run one after another on this stack
      const int t = e.start_order[e.started++];
      e.th[t].fiber = self;
      SetThread(e, t);
#if defined(HT_EMULATION_TSAN)
      __tsan_acquire(&e.grid_begin);
#endif
      (*e.fn)();
#if defined(HT_EMULATION_TSAN)
      __tsan_release(&e.grid_end);
#endif
      OnExit(e, t);
      ++e.stats.threads;
      if (e.nready != 0) break;
#if defined(HT_EMULATION_TSAN)
      break;
#endif
    }
#if !defined(HT_EMULATION_TSAN)
    e.pool.push_back(self);
#endif
    const int t = PickReady(e);
    if (t >= 0) {
      SetThread(e, t);
      SwitchTo(e, e.th[t].fiber);
    } else {
      SwitchTo(e, &e.host);  // starts new threads or sees that all is done
    }
    // Taken from the pool again: either new threads wait to be started or somebody made a mistake.
  }
}

void RunBlock(Engine& e) {
  ++g_block_serial;
  ++e.stats.blocks;
  e.started = e.done = e.at_barrier = e.nready = 0;
  e.cur = -1;
  std::memset(e.ready, 0, sizeof e.ready);
  for (int t = 0; t < e.n; ++t) e.th[t].st = St::kNew;
  for (int w = 0; w < 32; ++w) {
    e.warp_waiting[w] = 0;
    const int lanes = std::clamp(e.n - w * 32, 0, 32);
    e.warp_live[w] = lanes == 32 ? ~0u : (1u << lanes) - 1;
  }
  if (e.opt.order == Order::kRandom)
    for (int i = e.n - 1; i > 0; --i) std::swap(e.start_order[i], e.start_order[e.Rand() % std::uint64_t(i + 1)]);
  e.arena_no = (e.arena_no + 1) % kArenas;
#if HT_EMULATION_ASAN
  __asan_poison_memory_region(e.arena, kArena);
#endif
  e.arena_used = 0;
  e.static_used = 0;
  e.dyn_ptr = nullptr;
  while (!e.failed && e.done < e.n) {
    const int t = PickReady(e);
    if (t >= 0) { SetThread(e, t); SwitchTo(e, e.th[t].fiber); }
    else if (e.started < e.n) SwitchTo(e, TakeFiber(e));
    else break;
  }
#if defined(HT_EMULATION_TSAN)
  __tsan_switch_to_fiber(e.host_tsan, 1);
#endif
  if (!e.failed && e.done < e.n) {
    e.failed = true;
    int l = 0; for (int t = 0; t < e.n; ++t) if (e.th[t].st == St::kWarp) l = t;
    if (e.at_barrier != e.n - e.done)
      std::snprintf(e.text, sizeof e.text, "deadlock in block (%u,%u,%u): %d threads exited, %d wait at __syncthreads(), %d wait in warp collectives (e.g. thread %d, mask %08x)",
                    blockIdx.x, blockIdx.y, blockIdx.z, e.done, e.at_barrier, e.n - e.done - e.at_barrier, l, e.lane[l].mask);
  }
  if (e.failed) {  // abandon the fibers: their stacks are set up afresh
    e.pool.clear();
#if defined(HT_EMULATION_TSAN)
    for (auto& c : e.tsan) c = nullptr;  // their shadow call stacks are unbalanced
#endif
    int i = 0;
    for (auto& f : e.all) { Prepare(f.get(), i++); e.pool.push_back(f.get()); }
  }
}

void* ArenaTake(Engine& e, std::size_t size, std::size_t align) {
  constexpr std::size_t kRed = 32;
  std::size_t at = (e.arena_used + kRed + std::max<std::size_t>(align, 16) - 1) & ~(std::max<std::size_t>(align, 16) - 1);
  if (at + size + kRed > kArena) return nullptr;
  unsigned char* p = e.arena + std::size_t(e.arena_no) * kArena + at;
#if HT_EMULATION_ASAN
  __asan_unpoison_memory_region(p, size);
#endif
  for (std::size_t i = 0; i < size; ++i) const_cast<volatile unsigned char*>(p)[i] = 0xff;  // NaN: shared memory is not initialised (a loop: TSan intercepts memset)
  e.arena_used = at + size;
  return p;
}
}  // namespace

Options& Opt() { return E().opt; }
Stats& GetStats() { return E().stats; }

void Fail(const char* fmt, ...) {
  Engine& e = E();
  va_list ap;
  va_start(ap, fmt);
  std::vsnprintf(e.text, sizeof e.text, fmt, ap);
  va_end(ap);
  if (e.running != nullptr && e.running != &e.host) {
    e.failed = true;
    SwitchTo(e, &e.host);  // never comes back
  }
  std::fprintf(stderr, "emu: %s\n", e.text);
  std::abort();
}

void* SharedVar::Place() {
  Engine& e = E();
  e.static_used += size;
  if (e.static_used > 48 * 1024) Fail("static shared memory over 48 KiB at '%s'", name);
  where = ArenaTake(e, size, align);
  if (where == nullptr) Fail("shared memory over the limit at '%s'", name);
  serial = g_block_serial;
  return where;
}
void* DynamicShared() {
  Engine& e = E();
  if (e.dyn_ptr == nullptr) {
    e.dyn_ptr = ArenaTake(e, e.dyn, 16);
    if (e.dyn_ptr == nullptr) Fail("dynamic shared memory over the limit");
  }
  return e.dyn_ptr;
}

int LaneId() { return E().cur & 31; }
unsigned ActiveMask() { Engine& e = E(); return e.warp_live[e.cur >> 5]; }
void CheckAtomic(const void* p, std::size_t bytes) {
  if ((reinterpret_cast<std::uintptr_t>(p) & (bytes - 1)) != 0) Fail("misaligned atomic at %p", p);
}

int BlockBarrier(BarOp op, int pred, int line) {
  Engine& e = E();
  const int self = e.cur;
  Thread& h = e.th[self];
  h.bar_line = line;
  h.bar_pred = pred;
  h.st = St::kBlock;
  e.bar_op = op;
  ++e.at_barrier;
#if defined(HT_EMULATION_TSAN)
  const int gen = e.bar_gen & 1;
  __tsan_release(&e.bar_sync[gen]);
#endif
  if (e.at_barrier == e.n - e.done) ReleaseBarrier(e);
  if (h.st == St::kReady && e.opt.order == Order::kForward) {  // the last to come goes straight on
    e.ready[self >> 6] &= ~(1ull << (self & 63));
    --e.nready;
  } else {
    Block(e);
  }
#if defined(HT_EMULATION_TSAN)
  __tsan_acquire(&e.bar_sync[gen]);
#endif
  return h.bar_result;
}

std::uint64_t WarpCollective(WarpOp op, unsigned mask, std::uint64_t value, int src) {
  Engine& e = E();
  const int self = e.cur, w = self >> 5, l = self & 31;
  if (!((mask >> l) & 1)) Fail("warp %d lane %d calls a collective whose mask %08x leaves it out", w, l, mask);
  e.lane[self] = {value, 0, mask, src & 31, op};
  e.th[self].st = St::kWarp;
  e.warp_waiting[w] |= 1u << l;
#if defined(HT_EMULATION_TSAN)
  const int gen = e.warp_gen[w] & 1;  // only __syncwarp orders memory; shuffles and votes do not
  if (op == WarpOp::kSync) __tsan_release(&e.warp_sync[w][gen]);
#endif
  TryWarp(e, w, mask);
  if (e.th[self].st == St::kReady && e.opt.order == Order::kForward) {
    e.ready[self >> 6] &= ~(1ull << (self & 63));
    --e.nready;
  } else {
    Block(e);
  }
#if defined(HT_EMULATION_TSAN)
  if (op == WarpOp::kSync) __tsan_acquire(&e.warp_sync[w][gen]);
#endif
  return e.lane[self].result;
}

const char* LastFailure() { return E().text; }

bool RunGridChecked(const LaunchInfo& info, const std::function<void()>& thread) {
  std::scoped_lock lock(g_mu);
  Engine& e = E();
  if (e.arena == nullptr) e.arena = static_cast<unsigned char*>(mmap(nullptr, kArena * kArenas, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  e.failed = false;
  e.text[0] = 0;
  {  // where the host's stack is, for ASan
    pthread_attr_t a;
    void* lo;
    pthread_getattr_np(pthread_self(), &a);
    pthread_attr_getstack(&a, &lo, &e.host.size);
    pthread_attr_destroy(&a);
    e.host.lo = static_cast<char*>(lo);
  }
  e.fn = &thread;
  e.dyn = info.smem;
  e.running = &e.host;
  e.rng = e.opt.seed * 0x9E3779B97F4A7C15ull | 1;
  e.n = int(info.block.x * info.block.y * info.block.z);
  ::blockDim = info.block;
  ::gridDim = info.grid;
  for (int t = 0; t < e.n; ++t) {
    e.th[t].idx = {unsigned(t) % info.block.x, unsigned(t) / info.block.x % info.block.y, unsigned(t) / (info.block.x * info.block.y)};
    e.start_order[t] = e.opt.order == Order::kReverse ? e.n - 1 - t : t;
  }
#if defined(HT_EMULATION_TSAN)
  e.host_tsan = __tsan_get_current_fiber();
  for (int t = 0; t < e.n; ++t) for (int k : {0, kMaxThreads}) if (e.tsan[k + t] == nullptr) e.tsan[k + t] = __tsan_create_fiber(0);
  e.pool.reserve(1 << 20);  // nothing may allocate while a fiber's TSan context is current
  while (int(e.all.size()) < 2 * kMaxThreads) NewFiber(e);
  e.pool.clear();
  __tsan_release(&e.grid_begin);
#endif
  ++e.stats.launches;
  const std::uint64_t blocks = std::uint64_t(info.grid.x) * info.grid.y * info.grid.z;
  for (std::uint64_t i = 0; i < blocks && !e.failed; ++i) {
    const std::uint64_t b = e.opt.order == Order::kReverse ? blocks - 1 - i : i;
    ::blockIdx = {unsigned(b % info.grid.x), unsigned(b / info.grid.x % info.grid.y), unsigned(b / (std::uint64_t(info.grid.x) * info.grid.y))};
#if defined(HT_EMULATION_TSAN)
    if (i % kArenas == kArenas - 1) { __tsan_acquire(&e.grid_end); __tsan_release(&e.grid_begin); }
#endif
#if defined(HT_EMULATION_TSAN)
    e.tsan_set = i & 1 ? kMaxThreads : 0;
#endif
    RunBlock(e);
  }
#if defined(HT_EMULATION_TSAN)
  __tsan_acquire(&e.grid_end);
#endif
  return !e.failed;
}
}  // namespace halftone::emulation
