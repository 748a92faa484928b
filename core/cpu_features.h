// What this CPU and its operating system can run.
#pragma once

#include <string>

#include "halftone/core/status.h"

namespace halftone {

// Instruction sets that our own kernels are compiled for, in order.
enum class SimdLevel { kScalar, kAvx2, kAvx512 };

struct CpuFeatures {
  bool avx2 = false;
  bool fma = false;
  bool f16c = false;
  bool avx512f = false;
  bool avx512bw = false;
  bool avx512vl = false;
  bool avx512dq = false;
  bool avx512_bf16 = false;
  bool amx_bf16 = false;
  // bf16 products are faster than f32 ones: AMX, or AVX512-BF16 that is not slower than it should
  // be (bf16_speed.h). Where false, bf16 is best kept as storage around f32 arithmetic.
  bool fast_bf16 = false;
  // Images are best kept with channels in blocks of 16, [N, C / 16, H, W, 16], between convolutions, else
  // channels-last: with AVX-512 (timed on Zen 4 with oneDNN 2.6.3: benchmarks/measured.md), not with AMX,
  // where it was not timed and the library has kernels of its own for channels-last.
  bool channel_blocks = false;

  // kAvx512 needs F, BW, VL and DQ beside all of kAvx2, which needs AVX2, FMA and F16C.
  SimdLevel level() const;
  // "avx2 fma f16c", or "scalar" if there is none: for logs and the benchmark tables.
  std::string ToString() const;

  // Features of the processor whose register state the operating system saves.
  static CpuFeatures Detect();
  // Detect() once per process, changed by the environment variables HALFTONE_SIMD (see LimitSimd),
  // HALFTONE_BF16 (see ForceBf16) and HALFTONE_LAYOUT (see ForceLayout). A value that these refuse is
  // reported on standard error and ignored: a typing error must not end a program, and must not pass
  // unseen.
  static const CpuFeatures& Get();
};

// Removes from `features` what `name` excludes: "scalar" leaves none, "avx2" those up to AVX2, FMA
// and F16C, "avx512" all. Rules our own kernels; oneDNN obeys ONEDNN_MAX_CPU_ISA instead. Errors:
// InvalidArgument for another name, FailedPrecondition for a level that `features` lacks;
// `features` is then unchanged.
absl::Status LimitSimd(const std::string& name, CpuFeatures* features);

// Sets fast_bf16 whatever was measured: "native" takes the library's bf16 kernels wherever it has
// them, "widened" never. Errors: InvalidArgument for another name.
absl::Status ForceBf16(const std::string& name, CpuFeatures* features);

// Sets channel_blocks: "nhwc" keeps images channels-last, "nchw16c" has convolutions take blocks of
// channels. Errors: InvalidArgument for another name, FailedPrecondition for blocks without AVX-512;
// `features` is then unchanged.
absl::Status ForceLayout(const std::string& name, CpuFeatures* features);

const char* Name(SimdLevel level);

}  // namespace halftone
