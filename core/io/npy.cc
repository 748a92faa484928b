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
#include "halftone/core/io/npy_parts.h"

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

// Of a file of `size` bytes; `offset` is set to where the elements begin.
absl::StatusOr<NpyHeader> ReadHeader(uint64_t size, const ReadNext& read, uint64_t* offset) {
  uint64_t at = 0;
  const auto next = [&](char* data, size_t bytes) {
    at += bytes;
    if (size >= at) return read(data, bytes);
    return DataLoss("truncated in the npy header: got ", size, " bytes; expected ", at);
  };
  std::string magic(Magic().size(), '\0');
  if (size >= magic.size()) HT_RETURN_IF_ERROR(next(magic.data(), magic.size()));
  if (magic != Magic()) {
    return InvalidArgument("not an npy file: expected \\x93NUMPY at its start");
  }
  unsigned char version[2];
  HT_RETURN_IF_ERROR(next(reinterpret_cast<char*>(version), sizeof(version)));
  const int major = version[0], minor = version[1];
  if (major < 1 || major > 3 || minor != 0) {
    return InvalidArgument("npy version ", major, ".", minor, "; expected 1.0, 2.0 or 3.0");
  }
  uint32_t length = 0;  // in two bytes or four
  HT_RETURN_IF_ERROR(next(reinterpret_cast<char*>(&length), major == 1 ? 2 : 4));
  if (length > kMaxHeaderBytes) {
    return InvalidArgument("npy header has ", length, " bytes; expected at most ", kMaxHeaderBytes);
  }
  std::string header(length, '\0');
  HT_RETURN_IF_ERROR(next(header.data(), header.size()));
  *offset = at;
  return ParseNpyHeader(header);
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

absl::StatusOr<Tensor> ReadNpyFrom(uint64_t size, const ReadNext& read) {
  uint64_t offset = 0;
  HT_ASSIGN_OR_RETURN(const NpyHeader header, ReadHeader(size, read, &offset));
  const size_t element_size = SizeOf(header.dtype);
  const uint64_t bytes = static_cast<uint64_t>(header.shape.num_elements()) * element_size;
  if (size - offset != bytes) {
    return DataLoss(Name(header.dtype), header.shape, " takes ", bytes, " bytes; got ",
                    size - offset, " after the npy header");
  }
  HT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(header.dtype, header.shape));
  if (bytes != 0) HT_RETURN_IF_ERROR(read(tensor.raw(), bytes));
  if (header.dtype == DType::kBool) {
    const auto* const elements = static_cast<const uint8_t*>(tensor.raw());
    const auto* const end = elements + bytes;
    const auto* const wrong = std::find_if(elements, end, [](uint8_t b) { return b > 1; });
    if (wrong != end) {
      return DataLoss("bool ", wrong - elements, " is ", static_cast<int>(*wrong),
                      "; expected 0 or 1");
    }
  }
  if (!header.fortran_order || bytes == 0) return tensor;
  HT_ASSIGN_OR_RETURN(const Tensor ordered, Tensor::Allocate(header.dtype, header.shape));
  CopyFortranOrder(static_cast<const char*>(tensor.raw()), element_size, ordered);
  return ordered;
}

absl::StatusOr<Tensor> FromNpyBytes(const std::string& bytes) {
  size_t at = 0;
  return ReadNpyFrom(bytes.size(), [&](void* data, size_t count) {
    std::memcpy(data, bytes.data() + at, count);  // the sizes were checked against the whole
    at += count;
    return absl::OkStatus();
  });
}

std::string NpyHead(const Tensor& tensor) {
  std::string header = FormatNpyHeader({tensor.dtype(), false, tensor.shape()});
  const size_t before = Magic().size() + 4;
  const size_t used = before + header.size() + 1;
  header.append((kAlignment - used % kAlignment) % kAlignment, ' ');
  header += '\n';

  std::string head = Magic();
  head += {'\x01', '\x00', static_cast<char>(header.size() & 0xFF),
           static_cast<char>(header.size() >> 8)};
  return head + header;
}

std::string ToNpyBytes(const Tensor& tensor) {
  std::string bytes = NpyHead(tensor);
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
