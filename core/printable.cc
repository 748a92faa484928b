#include "halftone/core/printable.h"

namespace halftone {
namespace {

// U+0080 to U+009F, of which some terminals take U+009B for the beginning of an escape sequence.
bool IsC1(std::string_view text, size_t at) {
  const auto byte = [text](size_t i) { return static_cast<unsigned char>(text[i]); };
  return at + 1 < text.size() && byte(at) == 0xC2 && byte(at + 1) >= 0x80 && byte(at + 1) < 0xA0;
}

std::string Hex(char c) {
  constexpr char kDigits[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
}

}  // namespace

std::string Printable(std::string_view text, bool lines) {
  std::string printable;
  printable.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool kept = lines && (c == '\n' || c == '\t');
    if (IsC1(text, i)) {
      printable += Hex(c) + Hex(text[++i]);
    } else if (!kept && (static_cast<unsigned char>(c) < 0x20 || c == 0x7F)) {
      printable += Hex(c);
    } else {
      printable += c;
    }
  }
  return printable;
}

}  // namespace halftone
