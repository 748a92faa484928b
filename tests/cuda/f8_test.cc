// Products of 8-bit operands on the device: the library's where there is one, ours everywhere.
#include <gtest/gtest.h>

#include "halftone/kernels/cuda/runtime/kernel.h"
#include "halftone/kernels/cuda_target.h"
#include "halftone/tests/cuda/run_on_device.h"
#include "halftone/tests/support/op_cases.h"
#include "halftone/tests/support/run_kernel.h"
#include "halftone/tests/support/tolerances.h"

#if defined(HALFTONE_CUDA_EMULATED)
#include "halftone/tests/cuda_emulation/control.h"
#endif

namespace halftone::testing {
namespace f8_products {
namespace {

constexpr DType kE4M3 = DType::kF8E4M3, kE5M2 = DType::kF8E5M2;

// The library's products of a device of this compute capability; a real one is what it is.
class OnCapability {
 public:
#if defined(HALFTONE_CUDA_EMULATED)
  OnCapability(int major, int minor) {
    emulation::Options options = before_;
    options.compute_major = major;
    options.compute_minor = minor;
    emulation::SetOptions(options);
  }
  ~OnCapability() { emulation::SetOptions(before_); }
  bool is_so() const { return true; }

 private:
  const emulation::Options before_ = emulation::GetOptions();
#else
  OnCapability(int major, int minor) {
    cudaDeviceProp properties;
    if (cudaGetDeviceProperties(&properties, 0) != cudaSuccess) return;
    const bool is_new = properties.major * 10 + properties.minor >= 89;
    is_so_ = is_new == (major * 10 + minor >= 89);
  }
  bool is_so() const { return is_so_; }

 private:
  bool is_so_ = false;
#endif
};

OpInput Operand(DType dtype, Shape shape) {
  OpInput input = Pinned(Frozen(Reals(std::move(shape), -4, 4)));
  input.type.dtype = dtype;
  return input;
}

struct Product {
  int64_t m = 17, n = 32, k = 48;
  DType a = kE4M3, b = kE4M3, to = DType::kBF16;
  bool transpose_a = false, transpose_b = false;
  std::optional<DType> bias = {};
};

OpCase CaseOf(const Product& p) {
  const OpInput factor = Pinned(Frozen(Fixed({}, {0.5})));
  std::vector<OpInput> inputs = {Operand(p.a, p.transpose_a ? Shape{p.k, p.m} : Shape{p.m, p.k}),
                                 Operand(p.b, p.transpose_b ? Shape{p.n, p.k} : Shape{p.k, p.n}),
                                 factor, Pinned(Frozen(Fixed({}, {0.125})))};
  if (p.bias.has_value()) inputs.push_back(Operand(*p.bias, Shape{p.n}));
  return Case("f8_matmul", "a_test", std::move(inputs),
              {{"to", p.to}, {"transpose_a", p.transpose_a}, {"transpose_b", p.transpose_b}});
}

// Every candidate agrees with the reference; these many serve.
void Check(const Product& p, int candidates) {
  const OpCase c = CaseOf(p);
  const std::vector<Tensor> inputs = MakeCaseInputs(c, DType::kF32);
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF32);
  const ir::Node& node = *CaseNode(*graph);
  const auto want = RunReference(node, inputs);
  ASSERT_TRUE(want.ok()) << Message(want.status());
  int served = 0;
  for (const auto* candidate : CudaCandidates(c.op)) {
    auto kernel = kernels::KernelRegistry::Global().CreateNamed(node, candidate->name);
    if (!kernel.ok()) continue;
    ++served;
    const auto got = RunOnDevice(**kernel, node, inputs);
    ASSERT_TRUE(got.ok()) << Message(got.status());
    EXPECT_TRUE(AgreesWithReference(c.op, (*got)[0], (*want)[0]))
        << candidate->name << " " << node.Label();
  }
  EXPECT_EQ(served, candidates) << node.Label();
}

TEST(CudaF8, TheLibraryMultipliesInEveryOrderOfStorage) {
  const OnCapability device(9, 0);
  if (!device.is_so()) GTEST_SKIP() << "below compute capability 8.9";
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Check({.transpose_a = ta, .transpose_b = tb}, 2);
      Check({.m = 64, .a = kE5M2, .to = DType::kF32, .transpose_a = ta, .transpose_b = tb}, 2);
    }
  }
  Check({.b = kE5M2, .to = DType::kF16, .transpose_b = true}, 2);
  Check({.transpose_b = true, .bias = DType::kBF16}, 2);
}

TEST(CudaF8, OursDoesWhatTheLibraryDoesNot) {
  const OnCapability device(9, 0);
  if (!device.is_so()) GTEST_SKIP() << "below compute capability 8.9";
  Check({.n = 24}, 1);
  Check({.k = 40}, 1);
  Check({.a = kE5M2, .b = kE5M2}, 1);
  Check({.bias = DType::kF32}, 1);
  Check({.to = DType::kF32, .bias = DType::kF32}, 1);
  Check({.m = 0}, 1);
}

TEST(CudaF8, OlderDevicesHaveOursAndNoStepUsesIt) {
  const OnCapability device(8, 0);
  if (!device.is_so()) GTEST_SKIP() << "compute capability 8.9 or newer";
  Check({}, 1);
  EXPECT_EQ(kernels::CudaTraits(80).no_f8, "8-bit products need compute capability 8.9");
  EXPECT_EQ(kernels::CudaTraits(89).no_f8, "");
}

}  // namespace
}  // namespace f8_products
}  // namespace halftone::testing
