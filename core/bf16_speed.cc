#include "halftone/core/bf16_speed.h"

#include <algorithm>
#include <chrono>

#include "halftone/core/check.h"

namespace halftone {
#ifdef __x86_64__
namespace {

// Fifteen independent sums, more than latency times ports, so that throughput is what counts; in
// assembly, so that they stay in registers and are not folded away. They start at zero. vzeroupper:
// code without AVX that follows would wait for the upper halves.
#define HALFTONE_REGISTERS "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15"
#define HALFTONE_SUMS(instruction)                                                          \
  __asm__ volatile(                                                                         \
      "vpxor %%xmm0, %%xmm0, %%xmm0\n"                                                      \
      ".irp r," HALFTONE_REGISTERS                                                          \
      "\n vpxor %%xmm\\r, %%xmm\\r, %%xmm\\r\n.endr\n"                                      \
      ".rept 16\n.irp r," HALFTONE_REGISTERS "\n" instruction                               \
      " %%zmm0, %%zmm0, %%zmm\\r\n.endr\n.endr\nvzeroupper\n" ::                            \
          : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", \
            "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15")

double Seconds(void (*run)()) {
  constexpr int kRuns = 16;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i) run();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void MultiplyAdds() { HALFTONE_SUMS("vfmadd231ps"); }
void DotProducts() { HALFTONE_SUMS("vdpbf16ps"); }

#undef HALFTONE_SUMS
#undef HALFTONE_REGISTERS

}  // namespace

double MeasureBf16DotCost() {
  // The first rounds also bring the processor to the clock of its wide units. The best of several
  // is what an interruption does not touch.
  constexpr int kRounds = 32;
  double add = 1, dot = 1;
  for (int round = 0; round < kRounds; ++round) {
    add = std::min(add, Seconds(MultiplyAdds));
    dot = std::min(dot, Seconds(DotProducts));
  }
  return dot / add;
}

#else

double MeasureBf16DotCost() {
  HT_CHECK(false, "no AVX512-BF16 here");
  return 0;
}

#endif
}  // namespace halftone
