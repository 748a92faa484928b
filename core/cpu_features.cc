#include "halftone/core/cpu_features.h"

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#ifdef __x86_64__
#include <cpuid.h>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "halftone/core/bf16_speed.h"

namespace halftone {
namespace {

#ifdef __x86_64__

struct Cpuid {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

// All zero if the processor has no such leaf.
Cpuid ReadCpuid(uint32_t leaf, uint32_t subleaf) {
  Cpuid r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

bool Bit(uint64_t word, int bit) { return (word >> bit & 1) != 0; }

// XCR0: the register states that the operating system saves. Requires OSXSAVE.
uint64_t ReadXcr0() {
  uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

// Linux hands out the 8 KiB of AMX tile data on request only; asks whether it would.
bool LinuxOffersTileData() {
#ifdef __linux__
  constexpr int kArchGetXcompSupp = 0x1021;
  constexpr int kTileData = 18;
  uint64_t features = 0;
  return syscall(SYS_arch_prctl, kArchGetXcompSupp, &features) == 0 && Bit(features, kTileData);
#else
  return false;
#endif
}

#endif

void Apply(const char* variable, absl::Status (*change)(const std::string&, CpuFeatures*),
           CpuFeatures* features) {
  const char* value = std::getenv(variable);
  if (value == nullptr || value[0] == '\0') return;
  if (absl::Status status = change(value, features); !status.ok()) {
    std::fprintf(stderr, "halftone: warning: %s; ignored\n", Message(status).c_str());
  }
}

// What the machine has, changed by the environment.
CpuFeatures DetectLimited() {
  CpuFeatures features = CpuFeatures::Detect();
  Apply("HALFTONE_SIMD", LimitSimd, &features);
  Apply("HALFTONE_BF16", ForceBf16, &features);
  Apply("HALFTONE_LAYOUT", ForceLayout, &features);
  return features;
}

}  // namespace

SimdLevel CpuFeatures::level() const {
  if (!avx2 || !fma || !f16c) return SimdLevel::kScalar;
  return avx512f && avx512bw && avx512vl && avx512dq ? SimdLevel::kAvx512 : SimdLevel::kAvx2;
}

std::string CpuFeatures::ToString() const {
  std::string text;
  const auto add = [&text](bool present, const char* name) {
    if (!present) return;
    if (!text.empty()) text += ' ';
    text += name;
  };
  add(avx2, "avx2");
  add(fma, "fma");
  add(f16c, "f16c");
  add(avx512f, "avx512f");
  add(avx512bw, "avx512bw");
  add(avx512vl, "avx512vl");
  add(avx512dq, "avx512dq");
  add(avx512_bf16, "avx512_bf16");
  add(amx_bf16, "amx_bf16");
  add(fast_bf16, "fast_bf16");
  add(channel_blocks, "channel_blocks");
  return text.empty() ? "scalar" : text;
}

CpuFeatures CpuFeatures::Detect() {
  CpuFeatures features;
#ifdef __x86_64__
  const Cpuid basic = ReadCpuid(1, 0);
  if (!Bit(basic.ecx, 27)) return features;  // OSXSAVE
  const uint64_t xcr0 = ReadXcr0();
  const bool saves_ymm = (xcr0 & 0x06) == 0x06;
  const bool saves_zmm = (xcr0 & 0xE6) == 0xE6;
  const bool saves_tiles = (xcr0 & 0x60000) == 0x60000;

  const Cpuid extended = ReadCpuid(7, 0);
  const Cpuid extended1 = ReadCpuid(7, 1);
  features.fma = saves_ymm && Bit(basic.ecx, 12);
  features.f16c = saves_ymm && Bit(basic.ecx, 29);
  features.avx2 = saves_ymm && Bit(extended.ebx, 5);
  features.avx512f = saves_zmm && Bit(extended.ebx, 16);
  features.avx512dq = features.avx512f && Bit(extended.ebx, 17);
  features.avx512bw = features.avx512f && Bit(extended.ebx, 30);
  features.avx512vl = features.avx512f && Bit(extended.ebx, 31);
  features.avx512_bf16 = features.avx512f && Bit(extended1.eax, 5);
  features.amx_bf16 =
      saves_tiles && Bit(extended.edx, 22) && Bit(extended.edx, 24) && LinuxOffersTileData();
  // Twice the products for at most one and a half times the time.
  constexpr double kWorthwhileDotCost = 1.5;
  features.fast_bf16 =
      features.amx_bf16 || (features.avx512_bf16 && MeasureBf16DotCost() <= kWorthwhileDotCost);
  features.channel_blocks = features.level() == SimdLevel::kAvx512 && !features.amx_bf16;
#endif
  return features;
}

const CpuFeatures& CpuFeatures::Get() {
  static const CpuFeatures features = DetectLimited();
  return features;
}

absl::Status LimitSimd(const std::string& name, CpuFeatures* features) {
  SimdLevel level = SimdLevel::kScalar;
  if (name == "avx2") {
    level = SimdLevel::kAvx2;
  } else if (name == "avx512") {
    level = SimdLevel::kAvx512;
  } else if (name != "scalar") {
    return InvalidArgument("HALFTONE_SIMD: \"", name, "\"; expected scalar, avx2 or avx512");
  }
  if (level > features->level()) {
    return FailedPrecondition("HALFTONE_SIMD: this machine has no ", name, "; expected at most ",
                              Name(features->level()));
  }
  CpuFeatures limited;
  if (level >= SimdLevel::kAvx2) {
    limited.avx2 = features->avx2;
    limited.fma = features->fma;
    limited.f16c = features->f16c;
  }
  *features = level == SimdLevel::kAvx512 ? *features : limited;
  return absl::OkStatus();
}

absl::Status ForceBf16(const std::string& name, CpuFeatures* features) {
  if (name != "native" && name != "widened") {
    return InvalidArgument("HALFTONE_BF16: \"", name, "\"; expected native or widened");
  }
  features->fast_bf16 = name == "native";
  return absl::OkStatus();
}

absl::Status ForceLayout(const std::string& name, CpuFeatures* features) {
  if (name != "nhwc" && name != "nchw16c") {
    return InvalidArgument("HALFTONE_LAYOUT: \"", name, "\"; expected nhwc or nchw16c");
  }
  if (name == "nchw16c" && features->level() != SimdLevel::kAvx512) {
    return FailedPrecondition("HALFTONE_LAYOUT: this machine has no AVX-512; expected nhwc");
  }
  features->channel_blocks = name == "nchw16c";
  return absl::OkStatus();
}

const char* Name(SimdLevel level) {
  switch (level) {
    case SimdLevel::kScalar:
      return "scalar";
    case SimdLevel::kAvx2:
      return "avx2";
    case SimdLevel::kAvx512:
      return "avx512";
  }
  return "unknown";
}

}  // namespace halftone
