#include "halftone/core/dtype.h"

#include <array>
#include <limits>

#include "halftone/core/check.h"

namespace halftone {
namespace {

struct DTypeInfo {
  const char* name;
  size_t size;
};

// In the order of the enumeration.
constexpr std::array<DTypeInfo, kNumDTypes> kInfo = {{
    {"f64", 8},
    {"f32", 4},
    {"f16", 2},
    {"bf16", 2},
    {"i64", 8},
    {"i32", 4},
    {"u8", 1},
    {"bool", 1},
    {"f8e4m3", 1},
    {"f8e5m2", 1},
}};

const DTypeInfo& Info(DType dtype) {
  const auto index = static_cast<size_t>(dtype);
  HT_CHECK(index < kInfo.size(), "not a DType");
  return kInfo[index];
}

// Position in the order of promotion within floats and integers; f16 and bf16 are equal, neither
// holds the other, and so are the two of 8 bits.
int Width(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return 7;
    case DType::kF32:
      return 6;
    case DType::kF16:
    case DType::kBF16:
      return 5;
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return 4;
    case DType::kI64:
      return 3;
    case DType::kI32:
      return 2;
    case DType::kU8:
      return 1;
    case DType::kBool:
      return 0;
  }
  return 0;
}

}  // namespace

size_t SizeOf(DType dtype) { return Info(dtype).size; }

const char* Name(DType dtype) { return Info(dtype).name; }

std::optional<DType> ParseDType(std::string_view name) {
  for (size_t i = 0; i < kInfo.size(); ++i) {
    if (name == kInfo[i].name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

bool IsFloat(DType dtype) {
  return dtype == DType::kF64 || dtype == DType::kF32 || dtype == DType::kF16 ||
         dtype == DType::kBF16 || IsF8(dtype);
}

bool IsLow(DType dtype) { return dtype == DType::kF16 || dtype == DType::kBF16; }

bool IsF8(DType dtype) { return dtype == DType::kF8E4M3 || dtype == DType::kF8E5M2; }

bool IsInteger(DType dtype) {
  return dtype == DType::kI64 || dtype == DType::kI32 || dtype == DType::kU8;
}

DType Promote(DType a, DType b) {
  if (a == b) return a;
  const int width_a = Width(a);
  const int width_b = Width(b);
  if (width_a == width_b) return DType::kF32;
  return width_a > width_b ? a : b;
}

double MaxFinite(DType dtype) {
  HT_CHECK(IsFloat(dtype), "MaxFinite of a type that is not a float");
  switch (dtype) {
    case DType::kF64:
      return std::numeric_limits<double>::max();
    case DType::kF32:
      return std::numeric_limits<float>::max();
    case DType::kF16:
      return 65504.0;
    case DType::kF8E4M3:
      return 448.0;
    case DType::kF8E5M2:
      return 57344.0;
    default:
      return 0x1.FEp127;
  }
}

double MinNormal(DType dtype) {
  HT_CHECK(IsFloat(dtype), "MinNormal of a type that is not a float");
  switch (dtype) {
    case DType::kF64:
      return std::numeric_limits<double>::min();
    case DType::kF16:
    case DType::kF8E5M2:
      return 0x1p-14;
    case DType::kF8E4M3:
      return 0x1p-6;
    default:
      return 0x1p-126;
  }
}

double MinSubnormal(DType dtype) {
  HT_CHECK(IsFloat(dtype), "MinSubnormal of a type that is not a float");
  switch (dtype) {
    case DType::kF64:
      return std::numeric_limits<double>::denorm_min();
    case DType::kF32:
      return 0x1p-149;
    case DType::kF16:
      return 0x1p-24;
    case DType::kF8E4M3:
      return 0x1p-9;
    case DType::kF8E5M2:
      return 0x1p-16;
    default:
      return 0x1p-133;
  }
}

// Subnormal numbers lie as far apart as those of the first binade above them.
double Epsilon(DType dtype) { return MinSubnormal(dtype) / MinNormal(dtype); }

}  // namespace halftone
