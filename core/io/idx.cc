// Layout of the file: two zero bytes, type, rank, `rank` extents as big-endian 32-bit words, then
// the elements, big-endian, row-major. Reading goes through zlib, which passes a plain file
// through.
#include "halftone/core/io/idx.h"

#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iomanip>
#include <memory>
#include <optional>
#include <sstream>
#include <type_traits>
#include <utility>

#include "halftone/core/io/file_handle.h"

namespace halftone::io {
namespace {

// No deflate stream expands to more than 1,032 times its size.
constexpr int64_t kMaxExpansion = 1032;
constexpr int64_t kChunkBytes = int64_t{1} << 24;

struct GzClose {
  void operator()(gzFile file) const { gzclose_r(file); }
};
using GzHandle = std::unique_ptr<std::remove_pointer_t<gzFile>, GzClose>;

struct Source {
  GzHandle file;
  int64_t size = 0;  // of the file on disk
};

absl::StatusOr<Source> Open(const std::string& path) {
  Source source;
  HT_ASSIGN_OR_RETURN(FileHandle file, OpenRegularFile(path, &source.size));
  source.file.reset(gzdopen(file.fd(), "rb"));
  if (source.file == nullptr) return ResourceExhausted(path, ": zlib has no memory to read it");
  file.Release();
  gzbuffer(source.file.get(), 1 << 17);
  return source;
}

// Reads up to `size` bytes; fewer only at the end of the file. Errors: DataLoss.
absl::StatusOr<int64_t> Read(gzFile file, const std::string& path, void* data, int64_t size) {
  int64_t done = 0;
  while (done < size) {
    const auto want = static_cast<unsigned>(std::min(size - done, kChunkBytes));
    const int got = gzread(file, static_cast<char*>(data) + done, want);
    if (got > 0) done += got;
    if (got == static_cast<int>(want)) continue;
    int code = Z_OK;
    const char* text = gzerror(file, &code);
    if (code == Z_ERRNO) return DataLoss(path, ": cannot read: ", std::strerror(errno));
    if (code == Z_BUF_ERROR) return DataLoss(path, ": truncated gzip data");
    if (got < 0) return DataLoss(path, ": damaged gzip data: ", text);
    break;
  }
  return done;
}

absl::Status ReadHeaderBytes(gzFile file, const std::string& path, unsigned char* data,
                             int64_t size) {
  HT_ASSIGN_OR_RETURN(const int64_t got, Read(file, path, data, size));
  if (got == size) return absl::OkStatus();
  return DataLoss(path, ": truncated in the IDX header: got ", got, " bytes; expected ", size);
}

std::optional<DType> ElementType(unsigned char code) {
  switch (code) {
    case 0x08:
      return DType::kU8;
    case 0x0C:
      return DType::kI32;
    case 0x0D:
      return DType::kF32;
    case 0x0E:
      return DType::kF64;
    default:
      return std::nullopt;
  }
}

std::string Hex(unsigned value) {
  std::ostringstream out;
  out << "0x" << std::uppercase << std::hex << std::setw(2) << std::setfill('0') << value;
  return out.str();
}

struct Header {
  DType dtype = DType::kU8;
  Shape shape;
  int64_t data_bytes() const { return shape.num_elements() * static_cast<int64_t>(SizeOf(dtype)); }
};

absl::StatusOr<Header> ReadHeader(gzFile file, const std::string& path) {
  unsigned char magic[4];
  HT_RETURN_IF_ERROR(ReadHeaderBytes(file, path, magic, 4));
  if (magic[0] != 0 || magic[1] != 0) {
    return InvalidArgument(path, ": not an IDX file: starts with ", Hex(magic[0]), " ",
                           Hex(magic[1]), "; expected 0x00 0x00");
  }
  const std::optional<DType> dtype = ElementType(magic[2]);
  if (!dtype) {
    return InvalidArgument(path, ": IDX element type ", Hex(magic[2]),
                           "; expected 0x08 (u8), 0x0C (i32), 0x0D (f32) or 0x0E (f64)");
  }
  const int rank = magic[3];
  if (rank < 1 || rank > kMaxRank) {
    return InvalidArgument(path, ": IDX rank ", rank, "; expected 1..", kMaxRank);
  }
  unsigned char words[4 * kMaxRank];
  HT_RETURN_IF_ERROR(ReadHeaderBytes(file, path, words, 4 * rank));
  absl::InlinedVector<int64_t, kMaxRank> dims;
  for (int axis = 0; axis < rank; ++axis) {
    const unsigned char* w = words + 4 * axis;
    dims.push_back(int64_t{w[0]} << 24 | int64_t{w[1]} << 16 | int64_t{w[2]} << 8 | int64_t{w[3]});
  }
  absl::StatusOr<Shape> shape = Shape::Make(dims);
  if (!shape.ok()) return Annotate(shape.status(), path + ": ");
  return Header{*dtype, *std::move(shape)};
}

void ReverseBytes(unsigned char* data, size_t element_size, int64_t count) {
  for (int64_t i = 0; i < count; ++i, data += element_size) {
    std::reverse(data, data + element_size);
  }
}

}  // namespace

absl::StatusOr<Tensor> ReadIdx(const std::string& path, int64_t max_bytes) {
  HT_ASSIGN_OR_RETURN(const Source source, Open(path));
  gzFile file = source.file.get();
  HT_ASSIGN_OR_RETURN(const Header header, ReadHeader(file, path));

  const std::string type = Name(header.dtype) + header.shape.ToString();
  const int64_t bytes = header.data_bytes();
  if (bytes > max_bytes) {
    return InvalidArgument(path, ": ", type, " takes ", bytes, " bytes; expected at most ",
                           max_bytes);
  }
  const int64_t holds_at_most = gzdirect(file) != 0 ? source.size : source.size * kMaxExpansion;
  if (bytes > holds_at_most) {
    return DataLoss(path, ": truncated: ", type, " takes ", bytes,
                    " bytes; the file holds at most ", holds_at_most);
  }
  absl::StatusOr<Tensor> tensor = Tensor::Allocate(header.dtype, header.shape);
  if (!tensor.ok()) return Annotate(tensor.status(), path + ": ");
  auto* data = static_cast<unsigned char*>(tensor->raw());
  HT_ASSIGN_OR_RETURN(const int64_t got, Read(file, path, data, bytes));
  if (got < bytes) {
    return DataLoss(path, ": truncated: got ", got, " bytes of data; expected ", bytes, " for ",
                    type);
  }
  // Reading on past the data also makes zlib compare the checksum of a gzip file.
  unsigned char extra = 0;
  HT_ASSIGN_OR_RETURN(const int64_t trailing, Read(file, path, &extra, 1));
  if (trailing != 0) {
    return DataLoss(path, ": trailing bytes after the ", bytes, " of ", type);
  }
  const size_t element_size = SizeOf(header.dtype);
  if (element_size > 1) ReverseBytes(data, element_size, tensor->num_elements());
  return tensor;
}

}  // namespace halftone::io
