// Element types and the 16-bit storage types.
//
// Conversions to a 16-bit type round once, to nearest even, and keep inf, NaN and subnormals; they
// are done with integer operations so that every build and every CPU gives the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halftone {

enum class DType : uint8_t { kF64, kF32, kF16, kBF16, kI64, kI32, kU8, kBool };

inline constexpr int kNumDTypes = 8;

// Bytes of one element.
size_t SizeOf(DType dtype);

// "f32", "bf16", "bool", ...: the spelling used in graph text, messages and files.
const char* Name(DType dtype);
std::optional<DType> ParseDType(std::string_view name);

// f64 f32 f16 bf16.
bool IsFloat(DType dtype);
// f16 and bf16: the types that mixed precision lowers to.
bool IsLow(DType dtype);
// i64 i32 u8; bool is neither float nor integer.
bool IsInteger(DType dtype);

// The type an operation on mixed operands computes and returns in: the widest float wins, f16 with
// bf16 gives f32, an integer with a float gives the float, bool gives way to all.
DType Promote(DType a, DType b);

// Largest finite value of a float type, smallest positive normal, smallest positive subnormal.
// Requires: IsFloat(dtype).
double MaxFinite(DType dtype);
double MinNormal(DType dtype);
double MinSubnormal(DType dtype);
// The distance from 1 to the next number of a float type. Requires: IsFloat(dtype).
double Epsilon(DType dtype);

uint16_t F32ToF16Bits(float x);
float F16BitsToF32(uint16_t bits);
uint16_t F32ToBF16Bits(float x);
float BF16BitsToF32(uint16_t bits);
// From double with one rounding (not through float, which would round twice).
uint16_t F64ToF16Bits(double x);
uint16_t F64ToBF16Bits(double x);

// IEEE binary16 in memory. Arithmetic goes through float.
struct F16 {
  uint16_t bits = 0;
  F16() = default;
  explicit F16(float x) : bits(F32ToF16Bits(x)) {}
  explicit F16(double x) : bits(F64ToF16Bits(x)) {}
  explicit operator float() const { return F16BitsToF32(bits); }
  explicit operator double() const { return F16BitsToF32(bits); }
};

// bfloat16 in memory: the upper half of a float.
struct BF16 {
  uint16_t bits = 0;
  BF16() = default;
  explicit BF16(float x) : bits(F32ToBF16Bits(x)) {}
  explicit BF16(double x) : bits(F64ToBF16Bits(x)) {}
  explicit operator float() const { return BF16BitsToF32(bits); }
  explicit operator double() const { return BF16BitsToF32(bits); }
};

// Maps a C++ element type to its DType; only the eight types below have one.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<double> {
  static constexpr DType kValue = DType::kF64;
};
template <>
struct DTypeOf<float> {
  static constexpr DType kValue = DType::kF32;
};
template <>
struct DTypeOf<F16> {
  static constexpr DType kValue = DType::kF16;
};
template <>
struct DTypeOf<BF16> {
  static constexpr DType kValue = DType::kBF16;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType kValue = DType::kI64;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType kValue = DType::kI32;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType kValue = DType::kU8;
};
template <>
struct DTypeOf<bool> {
  static constexpr DType kValue = DType::kBool;
};

// Loads element `i` of an array of `dtype` as double, and stores a double with one correct rounding
// (round to nearest even; to an integer type: truncation toward zero, saturating, NaN gives 0; to
// bool: x != 0). Any nonzero byte of a bool is true. LoadInt and StoreInt convert by the same
// rules, also integers beyond 2^53.
double LoadDouble(const void* data, DType dtype, int64_t i);
void StoreDouble(void* data, DType dtype, int64_t i, double x);
int64_t LoadInt(const void* data, DType dtype, int64_t i);
void StoreInt(void* data, DType dtype, int64_t i, int64_t x);

}  // namespace halftone
