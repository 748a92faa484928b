#include "halftone/kernels/cpu_target.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace halftone::kernels {
namespace {

KernelCandidate Candidate(const char* name, const char* op, KernelTier tier, ir::DTypeSet dtypes,
                          Device::Kind device = Device::Kind::kCpu) {
  KernelCandidate candidate;
  candidate.name = name;
  candidate.op = op;
  candidate.device = device;
  candidate.tier = tier;
  candidate.dtypes = dtypes;
  candidate.create = [](const ir::Node&) -> absl::StatusOr<std::unique_ptr<Kernel>> {
    return Unimplemented("never made");
  };
  return candidate;
}

struct Registered {
  Registered() {
    registry.Add(Candidate("cpu:x:matmul", "matmul", KernelTier::kLibrary, {DType::kF32}));
    registry.Add(Candidate("cpu:y:matmul", "matmul", KernelTier::kNative, {DType::kBF16}));
    registry.Add(Candidate("reference:matmul", "matmul", KernelTier::kReference, ir::kFloats,
                           Device::Kind::kReference));
    registry.Add(Candidate("reference:erf", "erf", KernelTier::kReference, ir::kFloats,
                           Device::Kind::kReference));
  }
  KernelRegistry registry;
};

CpuFeatures Avx2() {
  CpuFeatures f;
  f.avx2 = f.fma = f.f16c = true;
  return f;
}

CpuFeatures Avx512() {
  CpuFeatures f = Avx2();
  f.avx512f = f.avx512bw = f.avx512vl = f.avx512dq = f.channel_blocks = true;
  return f;
}

TEST(CpuTarget, AsksTheRegistry) {
  const Registered r;
  const auto cpu = MakeCpuTarget(r.registry, Avx2());
  EXPECT_TRUE(cpu->HasKernel("matmul", DType::kF32));
  EXPECT_TRUE(cpu->HasKernel("matmul", DType::kBF16));
  EXPECT_FALSE(cpu->HasKernel("matmul", DType::kF16)) << "only the reference kernel";
  EXPECT_FALSE(cpu->HasKernel("erf", DType::kF32));
  EXPECT_TRUE(cpu->CanRun("erf"));
  EXPECT_FALSE(cpu->CanRun("softmax"));
  const auto reference = MakeReferenceTarget(r.registry);
  EXPECT_TRUE(reference->HasKernel("matmul", DType::kF16));
  EXPECT_FALSE(reference->HasKernel("matmul", DType::kI64));
  EXPECT_FALSE(reference->PrefersChannelsLast());
}

TEST(CpuTarget, NameAndLowTypeFollowTheProcessor) {
  const Registered r;
  EXPECT_EQ(MakeCpuTarget(r.registry, CpuFeatures())->name(), "cpu-scalar");
  EXPECT_EQ(MakeCpuTarget(r.registry, Avx2())->name(), "cpu-avx2");
  EXPECT_EQ(MakeCpuTarget(r.registry, Avx512())->name(), "cpu-avx512");
  CpuFeatures bf16 = Avx512();
  bf16.avx512_bf16 = true;
  std::string reason;
  EXPECT_EQ(MakeCpuTarget(r.registry, bf16)->name(), "cpu-avx512");
  EXPECT_EQ(MakeCpuTarget(r.registry, bf16)->PreferredLowType(&reason), DType::kF32);
  EXPECT_EQ(reason, "the processor multiplies bf16 no faster than f32 (AVX512-BF16, timed)");
  bf16.fast_bf16 = true;
  const auto target = MakeCpuTarget(r.registry, bf16);
  EXPECT_EQ(target->name(), "cpu-avx512bf16");
  EXPECT_EQ(target->PreferredLowType(&reason), DType::kBF16);
  EXPECT_EQ(reason, "the processor multiplies bf16 faster than f32 (AVX512-BF16, AMX)");
  EXPECT_EQ(MakeCpuTarget(r.registry, Avx512())->PreferredLowType(&reason), DType::kF32);
  EXPECT_EQ(reason, "the processor has no 16-bit products (AVX512-BF16)");
  bf16.channel_blocks = false;
  EXPECT_EQ(MakeCpuTarget(r.registry, bf16)->name(), "cpu-avx512bf16-nhwc");
  EXPECT_FALSE(MakeCpuTarget(r.registry, bf16)->PrefersChannelBlocks());
  EXPECT_TRUE(MakeCpuTarget(r.registry, Avx512())->PrefersChannelBlocks());
  // The operating system or HALFTONE_SIMD may have taken the rest of AVX-512 away.
  bf16.avx512bw = false;
  EXPECT_EQ(MakeCpuTarget(r.registry, bf16)->PreferredLowType(nullptr), DType::kF32);
  bf16.channel_blocks = true;
  EXPECT_FALSE(MakeCpuTarget(r.registry, bf16)->PrefersChannelBlocks());
}

}  // namespace
}  // namespace halftone::kernels
