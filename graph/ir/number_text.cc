#include "halftone/graph/ir/number_text.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

namespace halftone::ir {
namespace {

// Bit pattern of element `i`, zero-extended.
uint64_t BitsAt(const void* data, DType dtype, int64_t i) {
  uint64_t bits = 0;
  const size_t size = SizeOf(dtype);
  const char* from = static_cast<const char*>(data) + static_cast<size_t>(i) * size;
  // The target is little-endian, as all that Halftone runs on.
  std::memcpy(&bits, from, size);
  return bits;
}

std::string Hex(uint64_t bits) {
  char buffer[24];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, bits, 16).ptr;
  return "0x" + std::string(buffer, end);
}

template <typename T>
std::string Shortest(T x) {
  char buffer[40];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, x).ptr;
  return std::string(buffer, end);
}

// The fewest digits that round to the same pattern of 16 or 8 bits: 0.1, not 0.10009766. Where that is no
// shorter to write, the exact value: 65504, not 6.55e+04.
std::string ShortestLow(const void* data, DType dtype, int64_t i) {
  const double x = LoadDouble(data, dtype, i);
  const uint64_t bits = BitsAt(data, dtype, i);
  const std::string exact = Shortest(static_cast<float>(x));
  char buffer[40];
  for (int digits = 1; digits <= 17; ++digits) {
    const auto end =
        std::to_chars(buffer, buffer + sizeof buffer, x, std::chars_format::general, digits).ptr;
    double back = 0;
    std::from_chars(buffer, end, back);
    uint16_t rounded = 0;
    StoreDouble(&rounded, dtype, 0, back);
    if (rounded != bits) continue;
    const std::string text(buffer, end);
    return text.size() < exact.size() ? text : exact;
  }
  return exact;
}

uint64_t CanonicalNanBits(DType dtype) {
  uint64_t bits = 0;
  StoreDouble(&bits, dtype, 0, std::numeric_limits<double>::quiet_NaN());
  return bits;
}

absl::Status NotANumber(const std::string& text) {
  return InvalidArgument("\"", text.substr(0, 40), "\" is not a number");
}

absl::Status DoesNotFit(const std::string& text, DType dtype) {
  return OutOfRange(text.substr(0, 40), " does not fit ", Name(dtype));
}

template <typename T>
absl::StatusOr<T> FromChars(const std::string& text, DType dtype) {
  T value{};
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value);
  if (result.ec == std::errc::result_out_of_range) return DoesNotFit(text, dtype);
  if (result.ec != std::errc() || result.ptr != end) return NotANumber(text);
  return value;
}

absl::Status ParseFloatElement(const std::string& text, DType dtype, void* data, int64_t i) {
  if (text.size() > 2 && text[0] == '0' && text[1] == 'x') {
    uint64_t bits = 0;
    const char* end = text.data() + text.size();
    const auto result = std::from_chars(text.data() + 2, end, bits, 16);
    if (result.ec != std::errc() || result.ptr != end) return NotANumber(text);
    const size_t size = SizeOf(dtype);
    if (size < 8 && (bits >> (8 * size)) != 0) return DoesNotFit(text, dtype);
    std::memcpy(static_cast<char*>(data) + static_cast<size_t>(i) * size, &bits, size);
    return absl::OkStatus();
  }
  if (text == "nan" || text == "inf" || text == "-inf") {
    const double inf = std::numeric_limits<double>::infinity();
    StoreDouble(
        data, dtype, i,
        text == "nan" ? std::numeric_limits<double>::quiet_NaN() : (text == "inf" ? inf : -inf));
    return absl::OkStatus();
  }
  if (dtype == DType::kF32) {  // through double it would round twice
    HT_ASSIGN_OR_RETURN(const float x, FromChars<float>(text, dtype));
    if (!std::isfinite(x)) return NotANumber(text);  // from_chars reads "infinity" and the like
    static_cast<float*>(data)[i] = x;
    return absl::OkStatus();
  }
  HT_ASSIGN_OR_RETURN(const double x, FromChars<double>(text, dtype));
  if (!std::isfinite(x)) return NotANumber(text);
  if (IsF8(dtype) && std::abs(x) > MaxFinite(dtype)) return DoesNotFit(text, dtype);
  StoreDouble(data, dtype, i, x);
  if (!std::isfinite(LoadDouble(data, dtype, i))) return DoesNotFit(text, dtype);
  return absl::OkStatus();
}

}  // namespace

std::string FormatDouble(double x) { return FormatElement(&x, DType::kF64, 0); }

absl::StatusOr<double> ParseDouble(const std::string& text) {
  double x = 0;
  HT_RETURN_IF_ERROR(ParseFloatElement(text, DType::kF64, &x, 0));
  return x;
}

absl::StatusOr<int64_t> ParseInt(const std::string& text) {
  return FromChars<int64_t>(text, DType::kI64);
}

std::string FormatElement(const void* data, DType dtype, int64_t i) {
  if (dtype == DType::kBool) return LoadInt(data, dtype, i) != 0 ? "true" : "false";
  if (IsInteger(dtype)) return Shortest(LoadInt(data, dtype, i));
  const double x = LoadDouble(data, dtype, i);
  if (std::isnan(x)) {
    const uint64_t bits = BitsAt(data, dtype, i);
    return bits == CanonicalNanBits(dtype) ? "nan" : Hex(bits);
  }
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  if (dtype == DType::kF64) return Shortest(x);
  if (dtype == DType::kF32) return Shortest(static_cast<float>(x));
  return ShortestLow(data, dtype, i);
}

absl::Status ParseElement(const std::string& text, DType dtype, void* data, int64_t i) {
  if (IsFloat(dtype)) return ParseFloatElement(text, dtype, data, i);
  if (dtype == DType::kBool) {
    const bool value = text == "true" || text == "1";
    if (!value && text != "false" && text != "0") {
      return InvalidArgument("\"", text.substr(0, 40), "\" is not true or false");
    }
    StoreInt(data, dtype, i, value);
    return absl::OkStatus();
  }
  HT_ASSIGN_OR_RETURN(const int64_t x, FromChars<int64_t>(text, dtype));
  const bool fits = dtype == DType::kI64 ||
                    (dtype == DType::kI32 && x >= std::numeric_limits<int32_t>::min() &&
                     x <= std::numeric_limits<int32_t>::max()) ||
                    (dtype == DType::kU8 && x >= 0 && x <= 255);
  if (!fits) return DoesNotFit(text, dtype);
  StoreInt(data, dtype, i, x);
  return absl::OkStatus();
}

}  // namespace halftone::ir
