#include <cmath>

#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

uint64_t Bits(int64_t x) { return static_cast<uint64_t>(x); }

// NaN if either is: std::max would drop it.
double Larger(double a, double b) { return std::isnan(a) || a > b ? a : b; }
double Smaller(double a, double b) { return std::isnan(a) || a < b ? a : b; }

}  // namespace

void Register_reference_binary(KernelRegistry& r) {
  AddReference2(
      r, "add", ir::kNumeric, [](double a, double b) { return a + b; },
      [](int64_t a, int64_t b) { return static_cast<int64_t>(Bits(a) + Bits(b)); });
  AddReference2(
      r, "sub", ir::kNumeric, [](double a, double b) { return a - b; },
      [](int64_t a, int64_t b) { return static_cast<int64_t>(Bits(a) - Bits(b)); });
  AddReference2(
      r, "mul", ir::kNumeric, [](double a, double b) { return a * b; },
      [](int64_t a, int64_t b) { return static_cast<int64_t>(Bits(a) * Bits(b)); });
  AddReference2(r, "div", ir::kFloats, [](double a, double b) { return a / b; });
  AddReference2(r, "maximum", ir::kNumeric, Larger,
                [](int64_t a, int64_t b) { return a > b ? a : b; });
  AddReference2(r, "minimum", ir::kNumeric, Smaller,
                [](int64_t a, int64_t b) { return a < b ? a : b; });
  AddReference2(r, "pow", ir::kFloats, [](double a, double b) { return std::pow(a, b); });
}

}  // namespace halftone::kernels
