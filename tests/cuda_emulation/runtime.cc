// runtime.cpp - the part of the CUDA runtime API that the framework uses, on the host. Prototypes: NVIDIA's header.
#include <cuda_runtime_api.h>
#include <sys/mman.h>
#include <csignal>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>
#include "halftone/tests/cuda_emulation/engine.h"
#if defined(__SANITIZE_ADDRESS__)
#define HT_EMULATION_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HT_EMULATION_ASAN 1
#endif
#endif
#if HT_EMULATION_ASAN
#include <sanitizer/asan_interface.h>
#endif

struct CUstream_st {
  struct Op { std::function<void()> run; std::vector<std::pair<CUstream_st*, std::uint64_t>> deps; };
  std::deque<Op> q;
  std::uint64_t issued = 0, done = 0;
  bool blocking = true;
  std::vector<std::pair<CUstream_st*, std::uint64_t>> waits;  // for the next op
};
struct CUevent_st { CUstream_st* stream = nullptr; std::uint64_t seq = 0; std::chrono::steady_clock::time_point when; bool timing = true; };

namespace halftone::emulation {
namespace {
constexpr std::size_t kReserve = std::size_t(16) << 30;
struct Alloc { std::size_t size; int serial; bool freed; };
struct Device {
  unsigned char* base = nullptr;
  std::size_t top = 0, live = 0, limit = std::size_t(2) << 30;
  std::map<unsigned char*, Alloc> allocs;
  std::map<void*, std::size_t> pinned;
  int serial = 0, access = 0, current = 0;
  cudaError_t last = cudaSuccess, sticky = cudaSuccess;
  CUstream_st legacy;
  std::set<CUstream_st*> streams;
  std::recursive_mutex mu;
};
Device& D() { static Device* d = new Device; return *d; }

void Segv(int, siginfo_t* i, void*) {
  auto* p = static_cast<unsigned char*>(i->si_addr);
  Device& d = D();
  if (p >= d.base && p < d.base + kReserve) {
    auto it = d.allocs.upper_bound(p);
    if (it != d.allocs.begin()) { --it; std::fprintf(stderr, "emu: HOST code touched device memory %p: allocation #%d, %zu bytes, offset %td\n", static_cast<void*>(p), it->second.serial, it->second.size, p - it->first); }
  } else std::fprintf(stderr, "emu: SIGSEGV at %p\n", static_cast<void*>(p));
  std::signal(SIGSEGV, SIG_DFL);
}
void Init(Device& d) {
  if (d.base) return;
  d.base = static_cast<unsigned char*>(mmap(nullptr, kReserve, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  if (d.base == MAP_FAILED) { std::perror("emu: device memory"); std::abort(); }
  d.streams.insert(&d.legacy);
#if !HT_EMULATION_ASAN && !defined(HT_EMULATION_TSAN)
  struct sigaction sa {};
  sa.sa_sigaction = Segv; sa.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &sa, nullptr);
#endif
}
cudaError_t Set(cudaError_t e) { if (e != cudaSuccess) D().last = e; return e; }

void RunUntil(CUstream_st* s, std::uint64_t seq) {
  while (s->done < seq) {
    CUstream_st::Op op = std::move(s->q.front());
    s->q.pop_front();
    for (auto& [o, n] : op.deps) RunUntil(o, n);
    if (op.run) op.run();
    ++s->done;
  }
}
void Enqueue(CUstream_st* s, std::function<void()> f) {
  Device& d = D();
  if (s == nullptr || s == cudaStreamLegacy) s = &d.legacy;
  CUstream_st::Op op{std::move(f), std::move(s->waits)};
  s->waits.clear();
  if (s == &d.legacy) { for (auto* o : d.streams) if (o != s && o->blocking) op.deps.push_back({o, o->issued}); }
  else if (s->blocking) op.deps.push_back({&d.legacy, d.legacy.issued});
  s->q.push_back(std::move(op));
  ++s->issued;
  if (!Opt().lazy_streams) RunUntil(s, s->issued);
}
void SyncAll() { for (auto* s : D().streams) RunUntil(s, s->issued); }
CUstream_st* Real(cudaStream_t s) { return s == nullptr || s == cudaStreamLegacy ? &D().legacy : s; }
}  // namespace

bool IsDevicePointer(const void* p) {
  Device& d = D();
  auto* q = static_cast<const unsigned char*>(p);
  return d.base && q >= d.base && q < d.base + kReserve;
}
void DeviceAccessBegin() {
  Device& d = D();
  if (d.access++ == 0 && Opt().protect && d.top) mprotect(d.base, d.top, PROT_READ | PROT_WRITE);
}
void DeviceAccessEnd() {
  Device& d = D();
  if (--d.access == 0 && Opt().protect && d.top) mprotect(d.base, d.top, PROT_NONE);
}
void NotePointer(LaunchInfo& info, const void* p, int index) {
  if (p == nullptr || IsDevicePointer(p)) return;
  for (auto& [q, n] : D().pinned) if (p >= q && static_cast<const char*>(p) < static_cast<const char*>(q) + n) return;
  static thread_local char text[128];
  std::snprintf(text, sizeof text, "kernel argument %d is a pointer to host memory (%p)", index, p);
  info.bad_pointer = text;
}
cudaError_t Launch(const LaunchInfo& info, std::function<void()> thread) {
  return LaunchCustom(info, [info, thread = std::move(thread)]() -> std::string { return RunGridChecked(info, thread) ? "" : LastFailure(); });
}
cudaError_t LaunchCustom(const LaunchInfo& info, std::function<std::string()> grid) {
  Device& d = D();
  std::scoped_lock l(d.mu);
  Init(d);
  if (d.sticky != cudaSuccess) return Set(d.sticky);
  const auto& g = info.grid; const auto& b = info.block;
  const std::uint64_t n = std::uint64_t(b.x) * b.y * b.z;
  const char* why = nullptr;
  if (n == 0 || n > 1024 || b.x > 1024 || b.y > 1024 || b.z > 64) why = "block size";
  if (g.x == 0 || g.y == 0 || g.z == 0 || g.x > 2147483647u || g.y > 65535 || g.z > 65535) why = "grid size";
  if (info.smem > 227 * 1024) why = "dynamic shared memory";
  if (info.param_bytes > 4096) why = "kernel parameters over 4096 bytes";
  if (why) { std::fprintf(stderr, "emu: invalid launch: %s (grid %u,%u,%u block %u,%u,%u smem %zu params %zu)\n", why, g.x, g.y, g.z, b.x, b.y, b.z, info.smem, info.param_bytes); return Set(cudaErrorInvalidConfiguration); }
  if (info.bad_pointer) { std::fprintf(stderr, "emu: %s\n", info.bad_pointer); d.sticky = cudaErrorIllegalAddress; return Set(d.sticky); }
  Enqueue(info.stream, [grid = std::move(grid)] {
    Device& d = D();
    if (d.sticky != cudaSuccess) return;
    DeviceAccessBegin();
    const std::string wrong = grid();
    DeviceAccessEnd();
    if (!wrong.empty()) { std::fprintf(stderr, "emu: %s\n", wrong.c_str()); d.sticky = cudaErrorLaunchFailure; d.last = d.sticky; }
  });
  return d.last;
}
void ResetDevice() { Device& d = D(); d.sticky = d.last = cudaSuccess; }
}  // namespace halftone::emulation

using namespace halftone::emulation;
#define LOCK Device& d = D(); std::scoped_lock lock_(d.mu); Init(d)
extern "C" {
cudaError_t cudaGetDeviceCount(int* n) { *n = 1; return cudaSuccess; }
cudaError_t cudaGetDevice(int* n) { *n = D().current; return cudaSuccess; }
cudaError_t cudaSetDevice(int n) { if (n != 0) return Set(cudaErrorInvalidDevice); return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int* v) { *v = 13000; return cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* v) { *v = 13000; return cudaSuccess; }
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* p, int) {
  std::memset(p, 0, sizeof *p);
  std::strcpy(p->name, "Emulated CUDA device");
  p->major = 8; p->minor = 0; p->warpSize = 32; p->maxThreadsPerBlock = 1024; p->multiProcessorCount = 4; p->totalGlobalMem = D().limit; p->sharedMemPerBlock = 49152; p->sharedMemPerBlockOptin = 227 * 1024;
  return cudaSuccess;
}
cudaError_t cudaMalloc(void** out, size_t n) {
  LOCK;
  *out = nullptr;
  if (d.sticky != cudaSuccess) return Set(d.sticky);
  if (n == 0) return cudaSuccess;
  const std::size_t span = (n + 255) / 256 * 256 + 256;  // a red zone behind each
  if (d.live + n > d.limit || d.top + span > kReserve) return Set(cudaErrorMemoryAllocation);
  unsigned char* p = d.base + d.top;
  const std::size_t old = d.top;
  d.top = (d.top + span + 4095) & ~std::size_t(4095);  // prototype: page granular bump, freed memory never comes back into use
  mprotect(d.base + old, d.top - old, PROT_READ | PROT_WRITE);
  std::memset(p, 0xff, n);  // NaN: cudaMalloc does not clear
#if HT_EMULATION_ASAN
  __asan_poison_memory_region(p, d.top - old);
  __asan_unpoison_memory_region(p, n);
#endif
  if (Opt().protect && d.access == 0) mprotect(d.base + old, d.top - old, PROT_NONE);
  d.allocs[p] = {n, ++d.serial, false};
  d.live += n;
  *out = p;
  return cudaSuccess;
}
static cudaError_t FreeNow(void* p) {
  Device& d = D();
  auto it = d.allocs.find(static_cast<unsigned char*>(p));
  if (it == d.allocs.end() || it->second.freed) { std::fprintf(stderr, "emu: bad cudaFree(%p)\n", p); return Set(cudaErrorInvalidValue); }
  it->second.freed = true;
  d.live -= it->second.size;
#if HT_EMULATION_ASAN
  __asan_poison_memory_region(p, it->second.size);
#endif
  madvise(p, (it->second.size + 4095) & ~std::size_t(4095), MADV_DONTNEED);
  return cudaSuccess;
}
cudaError_t cudaFree(void* p) { LOCK; if (!p) return cudaSuccess; SyncAll(); return FreeNow(p); }
cudaError_t cudaMallocAsync(void** p, size_t n, cudaStream_t) { return cudaMalloc(p, n); }
cudaError_t cudaFreeAsync(void* p, cudaStream_t s) { LOCK; Enqueue(s, [p] { FreeNow(p); }); return cudaSuccess; }
cudaError_t cudaMallocHost(void** p, size_t n) { LOCK; *p = std::aligned_alloc(4096, (n + 4095) / 4096 * 4096); d.pinned[*p] = n; return cudaSuccess; }
cudaError_t cudaFreeHost(void* p) { LOCK; SyncAll(); d.pinned.erase(p); std::free(p); return cudaSuccess; }

static bool Pinned(const void* p) { auto& m = D().pinned; auto it = m.upper_bound(const_cast<void*>(p)); if (it == m.begin()) return false; --it; return static_cast<const char*>(p) < static_cast<const char*>(it->first) + it->second; }
static cudaError_t CheckRange(const void* p, size_t n, const char* what) {
  Device& d = D();
  auto it = d.allocs.upper_bound(static_cast<unsigned char*>(const_cast<void*>(p)));
  if (it == d.allocs.begin()) return Set(cudaErrorInvalidValue);
  --it;
  if (it->second.freed || static_cast<const unsigned char*>(p) + n > it->first + it->second.size) {
    std::fprintf(stderr, "emu: %s of %zu bytes at %p runs out of allocation #%d (%zu bytes%s)\n", what, n, p, it->second.serial, it->second.size, it->second.freed ? ", freed" : "");
    return Set(cudaErrorInvalidValue);
  }
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t n, cudaMemcpyKind kind, cudaStream_t s) {
  LOCK;
  if (d.sticky != cudaSuccess) return Set(d.sticky);
  if (n == 0) return cudaSuccess;
  const bool dd = IsDevicePointer(dst), sd = IsDevicePointer(src);
  if ((kind == cudaMemcpyHostToDevice && (!dd || sd)) || (kind == cudaMemcpyDeviceToHost && (dd || !sd)) || (kind == cudaMemcpyDeviceToDevice && !(dd && sd))) {
    std::fprintf(stderr, "emu: cudaMemcpy kind %d does not fit its pointers\n", kind);
    return Set(cudaErrorInvalidValue);
  }
  if (dd) if (auto e = CheckRange(dst, n, "copy to")) return e;
  if (sd) if (auto e = CheckRange(src, n, "copy from")) return e;
  if (!sd && dd && !Pinned(src)) {  // pageable: staged before the call returns
    auto staged = std::make_shared<std::vector<char>>(static_cast<const char*>(src), static_cast<const char*>(src) + n);
    Enqueue(s, [=] { DeviceAccessBegin(); std::memcpy(dst, staged->data(), n); DeviceAccessEnd(); });
    return cudaSuccess;
  }
  Enqueue(s, [=] { DeviceAccessBegin(); std::memmove(dst, src, n); DeviceAccessEnd(); });
  if (sd && !dd && !Pinned(dst)) RunUntil(Real(s), Real(s)->issued);  // pageable: done when the call returns
  return cudaSuccess;
}
cudaError_t cudaMemcpy(void* dst, const void* src, size_t n, cudaMemcpyKind kind) {
  auto e = cudaMemcpyAsync(dst, src, n, kind, nullptr);
  if (e == cudaSuccess && kind != cudaMemcpyDeviceToDevice) { LOCK; RunUntil(&d.legacy, d.legacy.issued); if (d.sticky) return Set(d.sticky); }
  return e;
}
cudaError_t cudaMemsetAsync(void* p, int v, size_t n, cudaStream_t s) {
  LOCK;
  if (auto e = CheckRange(p, n, "memset")) return e;
  Enqueue(s, [=] { DeviceAccessBegin(); std::memset(p, v, n); DeviceAccessEnd(); });
  return cudaSuccess;
}
cudaError_t cudaMemset(void* p, int v, size_t n) { return cudaMemsetAsync(p, v, n, nullptr); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* s, unsigned f) { LOCK; *s = new CUstream_st; (*s)->blocking = !(f & cudaStreamNonBlocking); d.streams.insert(*s); return cudaSuccess; }
cudaError_t cudaStreamCreate(cudaStream_t* s) { return cudaStreamCreateWithFlags(s, 0); }
cudaError_t cudaStreamDestroy(cudaStream_t s) { LOCK; RunUntil(s, s->issued); d.streams.erase(s); return cudaSuccess; /* prototype: events may still name it */ }
cudaError_t cudaStreamSynchronize(cudaStream_t s) { LOCK; RunUntil(Real(s), Real(s)->issued); return Set(d.sticky); }
cudaError_t cudaStreamQuery(cudaStream_t s) { LOCK; auto* r = Real(s); if (r->done < r->issued) { RunUntil(r, r->done + 1); return cudaErrorNotReady; } return d.sticky; }
cudaError_t cudaDeviceSynchronize() { LOCK; SyncAll(); return Set(d.sticky); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* e, unsigned f) { *e = new CUevent_st; (*e)->timing = !(f & cudaEventDisableTiming); return cudaSuccess; }
cudaError_t cudaEventCreate(cudaEvent_t* e) { return cudaEventCreateWithFlags(e, 0); }
cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) { LOCK; Enqueue(s, [e] { e->when = std::chrono::steady_clock::now(); }); e->stream = Real(s); e->seq = Real(s)->issued; return cudaSuccess; }
cudaError_t cudaEventSynchronize(cudaEvent_t e) { LOCK; if (e->stream) RunUntil(e->stream, e->seq); return Set(d.sticky); }
cudaError_t cudaEventQuery(cudaEvent_t e) { LOCK; if (e->stream && e->stream->done < e->seq) { RunUntil(e->stream, e->stream->done + 1); return cudaErrorNotReady; } return d.sticky; }
cudaError_t cudaEventElapsedTime(float* ms, cudaEvent_t a, cudaEvent_t b) { *ms = std::chrono::duration<float, std::milli>(b->when - a->when).count(); return cudaSuccess; }
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned) { LOCK; if (e->stream) Real(s)->waits.push_back({e->stream, e->seq}); return cudaSuccess; }
cudaError_t cudaLaunchHostFunc(cudaStream_t s, cudaHostFn_t f, void* u) { LOCK; Enqueue(s, [=] { f(u); }); return cudaSuccess; }
cudaError_t cudaGetLastError() { auto e = D().last; D().last = D().sticky; return e; }
cudaError_t cudaPeekAtLastError() { return D().last; }
const char* cudaGetErrorName(cudaError_t e) { switch (e) { case cudaSuccess: return "cudaSuccess"; case cudaErrorInvalidValue: return "cudaErrorInvalidValue"; case cudaErrorMemoryAllocation: return "cudaErrorMemoryAllocation"; case cudaErrorInvalidConfiguration: return "cudaErrorInvalidConfiguration"; case cudaErrorLaunchFailure: return "cudaErrorLaunchFailure"; case cudaErrorIllegalAddress: return "cudaErrorIllegalAddress"; default: return "cudaError(other)"; } }
const char* cudaGetErrorString(cudaError_t e) { return cudaGetErrorName(e); }
cudaError_t cudaFuncSetAttribute(const void*, cudaFuncAttribute, int) { return cudaSuccess; }
cudaError_t cudaMemGetInfo(size_t* f, size_t* t) { auto& d = D(); *t = d.limit; *f = d.limit - d.live; return cudaSuccess; }
}
namespace halftone::emulation {
bool FindAlloc(std::uint64_t a, std::uint64_t& b, std::uint64_t& e, std::string* text) {
  Device& d = D();
  auto it = d.allocs.upper_bound(reinterpret_cast<unsigned char*>(a));
  if (it == d.allocs.begin()) { if (text) *text = " (no device memory at all)"; return false; }
  --it;
  b = reinterpret_cast<std::uint64_t>(it->first); e = b + it->second.size;
  if (text) { char t[128]; std::snprintf(t, sizeof t, " (allocation #%d below it: %zu bytes%s, offset %ld)", it->second.serial, it->second.size, it->second.freed ? ", freed" : "", long(a - b)); *text = t; }
  return !it->second.freed && a < e;
}
void StreamWork(cudaStream_t s, std::function<void()> f) { Device& d = D(); std::scoped_lock l(d.mu); Enqueue(s, [f = std::move(f)] { DeviceAccessBegin(); f(); DeviceAccessEnd(); }); }
}
