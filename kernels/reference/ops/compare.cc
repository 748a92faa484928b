#include <cmath>

#include "halftone/kernels/reference/support/reference_kernel.h"

namespace halftone::kernels {
namespace {

constexpr ir::DTypeSet kBools{DType::kBool};

// One comparison for reals (NaN unordered) and integers.
template <typename Compare>
void AddComparison(KernelRegistry& r, const char* op) {
  AddReference2(
      r, op, ir::kAnyDType, [](double a, double b) -> double { return Compare()(a, b); },
      [](int64_t a, int64_t b) -> int64_t { return Compare()(a, b); });
}

}  // namespace

void Register_reference_compare(KernelRegistry& r) {
  AddComparison<std::equal_to<>>(r, "equal");
  AddComparison<std::not_equal_to<>>(r, "not_equal");
  AddComparison<std::less<>>(r, "less");
  AddComparison<std::less_equal<>>(r, "less_equal");
  AddComparison<std::greater<>>(r, "greater");
  AddComparison<std::greater_equal<>>(r, "greater_equal");
  AddReference2(r, "logical_and", kBools,
                [](double a, double b) -> double { return a != 0 && b != 0; });
  AddReference2(r, "logical_or", kBools,
                [](double a, double b) -> double { return a != 0 || b != 0; });
  AddReference1(r, "logical_not", kBools, [](double a) -> double { return a == 0; });
  AddReference1(r, "isfinite", ir::kFloats, [](double x) -> double { return std::isfinite(x); });
}

}  // namespace halftone::kernels
