#include "halftone/graph/ir/text_format.h"

#include <cstring>

#include "halftone/graph/ir/number_text.h"

namespace halftone::ir {
namespace {

template <typename Items, typename Format>
std::string Join(const Items& items, Format format) {
  std::string text = "[";
  for (size_t i = 0; i < items.size(); ++i) {
    if (i > 0) text += ", ";
    text += format(items[i]);
  }
  return text + "]";
}

}  // namespace

std::string Quote(const std::string& text) {
  static const char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : text) {
    const unsigned char byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
        quoted += "\\\"";
        break;
      case '\\':
        quoted += "\\\\";
        break;
      case '\n':
        quoted += "\\n";
        break;
      case '\t':
        quoted += "\\t";
        break;
      case '\r':
        quoted += "\\r";
        break;
      default:
        if (byte < 0x20 || byte == 0x7f) {
          quoted += "\\x";
          quoted += kHex[byte >> 4];
          quoted += kHex[byte & 15];
        } else {
          quoted += c;
        }
    }
  }
  return quoted + "\"";
}

bool IsSplat(const Tensor& tensor) {
  const int64_t n = tensor.num_elements();
  if (n < 2) return false;
  const size_t size = SizeOf(tensor.dtype());
  const char* data = static_cast<const char*>(tensor.raw());
  // Equal to itself shifted by one element: all elements are equal.
  return std::memcmp(data, data + size, tensor.num_bytes() - size) == 0;
}

std::string FormatTensor(const Tensor& tensor, bool splat) {
  splat = splat && IsSplat(tensor);
  std::string text = (splat ? "splat<" : "dense<") + tensor.TypeString() + ">(";
  const int64_t n = splat ? 1 : tensor.num_elements();
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) text += ", ";
    text += FormatElement(tensor.raw(), tensor.dtype(), i);
  }
  return text + ")";
}

std::string FormatAttr(const AttrValue& value) {
  switch (TypeOf(value)) {
    case AttrType::kBool:
      return std::get<bool>(value) ? "true" : "false";
    case AttrType::kInt:
      return std::to_string(std::get<int64_t>(value));
    case AttrType::kFloat:
      return FormatDouble(std::get<double>(value));
    case AttrType::kString:
      return Quote(std::get<std::string>(value));
    case AttrType::kDType:
      return Name(std::get<DType>(value));
    case AttrType::kInts:
      return Join(std::get<std::vector<int64_t>>(value),
                  [](int64_t x) { return std::to_string(x); });
    case AttrType::kFloats:
      return Join(std::get<std::vector<double>>(value), FormatDouble);
    case AttrType::kStrings:
      return Join(std::get<std::vector<std::string>>(value), Quote);
    case AttrType::kTensor: {
      const Tensor& tensor = std::get<Tensor>(value);
      return tensor.defined() ? FormatTensor(tensor, /*splat=*/true) : "undefined";
    }
  }
  return "?";
}

std::string FormatAttrBriefly(const AttrValue& value) {
  if (const auto* tensor = std::get_if<Tensor>(&value)) {
    return tensor->defined() ? tensor->TypeString() : "undefined";
  }
  std::string text = FormatAttr(value);
  if (text.size() > 80) text = text.substr(0, 77) + "...";
  return text;
}

}  // namespace halftone::ir
