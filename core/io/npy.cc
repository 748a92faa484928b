// Layout of the file: "\x93NUMPY", major and minor version, the length of the header (two bytes
// little-endian in version 1, four from version 2 on), the header, the elements. The header is a
// Python dictionary with exactly the keys descr, fortran_order and shape, then spaces and a
// newline.
#include "halftone/core/io/npy.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "halftone/core/io/file.h"
#include "halftone/core/io/npy_header.h"

namespace halftone::io {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they are");

const std::string& Magic() {
  static const auto* const magic = new std::string("\x93NUMPY");
  return *magic;
}
// Version 1 cannot have more; a header that describes a tensor needs a few hundred.
constexpr uint32_t kMaxHeaderBytes = 65535;
constexpr size_t kAlignment = 64;

// `offset` is set to where the elements begin.
absl::StatusOr<NpyHeader> ReadHeader(const std::string& bytes, size_t* offset) {
  const size_t version_at = Magic().size();
  if (bytes.compare(0, version_at, Magic()) != 0) {
    return InvalidArgument("not an npy file: expected \\x93NUMPY at its start");
  }
  const auto byte = [&bytes](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const auto truncated = [&bytes](size_t expected) {
    return DataLoss("truncated in the npy header: got ", bytes.size(), " bytes; expected ",
                    expected);
  };
  if (bytes.size() < version_at + 2) return truncated(version_at + 2);
  const int major = byte(version_at), minor = byte(version_at + 1);
  if (major < 1 || major > 3 || minor != 0) {
    return InvalidArgument("npy version ", major, ".", minor, "; expected 1.0, 2.0 or 3.0");
  }
  const size_t length_at = version_at + 2, length_bytes = major == 1 ? 2 : 4;
  const size_t header_at = length_at + length_bytes;
  if (bytes.size() < header_at) return truncated(header_at);
  uint32_t length = 0;
  for (size_t i = 0; i < length_bytes; ++i) length |= uint32_t{byte(length_at + i)} << (8 * i);
  if (length > kMaxHeaderBytes) {
    return InvalidArgument("npy header has ", length, " bytes; expected at most ", kMaxHeaderBytes);
  }
  *offset = header_at + length;
  if (bytes.size() < *offset) return truncated(*offset);
  return ParseNpyHeader(bytes.substr(header_at, length));
}

// Copies elements in Fortran order (first axis fastest) into row-major order.
void CopyFortranOrder(const char* from, size_t element_size, const Tensor& to) {
  const Shape& shape = to.shape();
  const auto strides = shape.strides();
  std::vector<int64_t> index(static_cast<size_t>(shape.rank()), 0);
  auto* const data = static_cast<char*>(to.raw());
  for (int64_t i = 0, target = 0; i < to.num_elements(); ++i) {
    std::memcpy(data + static_cast<size_t>(target) * element_size,
                from + static_cast<size_t>(i) * element_size, element_size);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      target += strides[static_cast<size_t>(axis)];
      if (++index[static_cast<size_t>(axis)] < shape[axis]) break;
      target -= strides[static_cast<size_t>(axis)] * shape[axis];
      index[static_cast<size_t>(axis)] = 0;
    }
  }
}

}  // namespace

absl::StatusOr<Tensor> FromNpyBytes(const std::string& bytes) {
  size_t offset = 0;
  HT_ASSIGN_OR_RETURN(const NpyHeader header, ReadHeader(bytes, &offset));
  const size_t element_size = SizeOf(header.dtype);
  const size_t size = static_cast<size_t>(header.shape.num_elements()) * element_size;
  if (bytes.size() - offset != size) {
    return DataLoss(Name(header.dtype), header.shape, " takes ", size, " bytes; got ",
                    bytes.size() - offset, " after the npy header");
  }
  const char* const elements = bytes.data() + offset;
  if (header.dtype == DType::kBool) {
    const auto valid = [](char c) { return c == 0 || c == 1; };
    const char* const wrong = std::find_if_not(elements, elements + size, valid);
    if (wrong != elements + size) {
      return DataLoss("bool ", wrong - elements, " is ",
                      static_cast<int>(static_cast<unsigned char>(*wrong)), "; expected 0 or 1");
    }
  }
  HT_ASSIGN_OR_RETURN(const Tensor tensor, Tensor::Allocate(header.dtype, header.shape));
  if (header.fortran_order) {
    CopyFortranOrder(elements, element_size, tensor);
  } else if (size != 0) {
    std::memcpy(tensor.raw(), elements, size);
  }
  return tensor;
}

std::string ToNpyBytes(const Tensor& tensor) {
  std::string header = FormatNpyHeader({tensor.dtype(), false, tensor.shape()});
  const size_t before = Magic().size() + 4;
  const size_t used = before + header.size() + 1;
  header.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  header += '\n';

  std::string bytes = Magic();
  bytes += {'\x01', '\x00', static_cast<char>(header.size() & 0xFF),
            static_cast<char>(header.size() >> 8)};
  bytes += header;
  bytes.append(static_cast<const char*>(tensor.raw()), tensor.num_bytes());
  return bytes;
}

absl::StatusOr<Tensor> ReadNpy(const std::string& path, int64_t max_bytes) {
  HT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, max_bytes));
  absl::StatusOr<Tensor> tensor = FromNpyBytes(bytes);
  if (!tensor.ok()) return Annotate(tensor.status(), path + ": ");
  return tensor;
}

absl::Status WriteNpy(const std::string& path, const Tensor& tensor) {
  return WriteFileAtomically(path, ToNpyBytes(tensor));
}

}  // namespace halftone::io
