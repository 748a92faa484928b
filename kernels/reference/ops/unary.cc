#include <cmath>

#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

// Two's complement wrap-around, without signed overflow.
int64_t WrapNeg(int64_t x) { return static_cast<int64_t>(0 - static_cast<uint64_t>(x)); }

}  // namespace

void Register_reference_unary(KernelRegistry& r) {
  AddReference1(r, "exp", ir::kFloats, [](double x) { return std::exp(x); });
  AddReference1(r, "log", ir::kFloats, [](double x) { return std::log(x); });
  AddReference1(r, "sqrt", ir::kFloats, [](double x) { return std::sqrt(x); });
  AddReference1(r, "cos", ir::kFloats, [](double x) { return std::cos(x); });
  AddReference1(r, "sin", ir::kFloats, [](double x) { return std::sin(x); });
  AddReference1(r, "erf", ir::kFloats, [](double x) { return std::erf(x); });
  AddReference1(r, "reciprocal", ir::kFloats, [](double x) { return 1 / x; });
  AddReference1(r, "floor", ir::kFloats, [](double x) { return std::floor(x); });
  AddReference1(
      r, "neg", ir::kNumeric, [](double x) { return -x; }, WrapNeg);
  AddReference1(
      r, "abs", ir::kNumeric, [](double x) { return std::fabs(x); },
      [](int64_t x) { return x < 0 ? WrapNeg(x) : x; });
}

}  // namespace halftone::kernels
