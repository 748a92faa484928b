// Element types and the 16-bit and 8-bit storage types.
//
// Conversions to a 16-bit type round once, to nearest even, and keep inf, NaN and subnormals; they
// are done with integer operations so that every build and every CPU gives the same bits.
// Conversions to an 8-bit type round likewise, and saturate: a finite number beyond the largest
// becomes the largest. What is not finite stays so: an inf becomes NaN in e4m3, which has no inf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace halftone {

enum class DType : uint8_t {
  kF64,
  kF32,
  kF16,
  kBF16,
  kI64,
  kI32,
  kU8,
  kBool,
  kF8E4M3,
  kF8E5M2,
  // What is asked for as "FP8" names the format of the forward pass.
  kF8 = kF8E4M3
};

inline constexpr int kNumDTypes = 10;

// Bytes of one element.
size_t SizeOf(DType dtype);

// "f32", "bf16", "bool", ...: the spelling used in graph text, messages and files.
const char* Name(DType dtype);
std::optional<DType> ParseDType(std::string_view name);

// f64 f32 f16 bf16 f8e4m3 f8e5m2.
bool IsFloat(DType dtype);
// f16 and bf16: the types that mixed precision lowers to.
bool IsLow(DType dtype);
// f8e4m3 and f8e5m2: storage of scaled operands of matrix products, without arithmetic.
bool IsF8(DType dtype);
// i64 i32 u8; bool is neither float nor integer.
bool IsInteger(DType dtype);

// The type an operation on mixed operands computes and returns in: the widest float wins, f16 with
// bf16 and one f8 with the other give f32, an integer with a float gives the float, bool gives way to all.
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
uint8_t F32ToF8E4M3Bits(float x);
float F8E4M3BitsToF32(uint8_t bits);
uint8_t F32ToF8E5M2Bits(float x);
float F8E5M2BitsToF32(uint8_t bits);
// From double with one rounding (not through float, which would round twice).
uint16_t F64ToF16Bits(double x);
uint16_t F64ToBF16Bits(double x);
uint8_t F64ToF8E4M3Bits(double x);
uint8_t F64ToF8E5M2Bits(double x);

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

// OCP FP8 E4M3 ("e4m3fn") in memory: 4 bits of exponent with bias 7, 3 of mantissa; up to 448, no
// inf, and as NaN only the pattern of all ones.
// Source: OCP 8-bit Floating Point Specification (OFP8) 1.0, 2023, table 1.
struct F8E4M3 {
  uint8_t bits = 0;
  F8E4M3() = default;
  explicit F8E4M3(float x) : bits(F32ToF8E4M3Bits(x)) {}
  explicit F8E4M3(double x) : bits(F64ToF8E4M3Bits(x)) {}
  explicit operator float() const { return F8E4M3BitsToF32(bits); }
  explicit operator double() const { return F8E4M3BitsToF32(bits); }
};

// OCP FP8 E5M2 in memory: the upper half of an f16; up to 57344, with inf and NaN as IEEE 754 has.
struct F8E5M2 {
  uint8_t bits = 0;
  F8E5M2() = default;
  explicit F8E5M2(float x) : bits(F32ToF8E5M2Bits(x)) {}
  explicit F8E5M2(double x) : bits(F64ToF8E5M2Bits(x)) {}
  explicit operator float() const { return F8E5M2BitsToF32(bits); }
  explicit operator double() const { return F8E5M2BitsToF32(bits); }
};

// Maps a C++ element type to its DType; only the ten types below have one.
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
template <>
struct DTypeOf<F8E4M3> {
  static constexpr DType kValue = DType::kF8E4M3;
};
template <>
struct DTypeOf<F8E5M2> {
  static constexpr DType kValue = DType::kF8E5M2;
};

// Loads element `i` of an array of `dtype` as double, and stores a double with one correct rounding
// (round to nearest even, saturating in 8 bits; to an integer type: truncation toward zero, saturating, NaN gives 0; to
// bool: x != 0). Any nonzero byte of a bool is true. LoadInt and StoreInt convert by the same
// rules, also integers beyond 2^53.
double LoadDouble(const void* data, DType dtype, int64_t i);
void StoreDouble(void* data, DType dtype, int64_t i, double x);
int64_t LoadInt(const void* data, DType dtype, int64_t i);
void StoreInt(void* data, DType dtype, int64_t i, int64_t x);

}  // namespace halftone
