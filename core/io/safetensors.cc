// Layout of the file: the length of the header (eight bytes, little-endian), the header, and the
// elements of all tensors.
#include "halftone/core/io/safetensors.h"

#include <bit>
#include <cstring>
#include <vector>

#include "halftone/core/io/file.h"
#include "halftone/core/io/file_handle.h"
#include "halftone/core/io/read_next.h"
#include "halftone/core/io/safetensors_header.h"
#include "halftone/core/printable.h"

namespace halftone::io {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are copied as they are");

std::string TensorCalled(const std::string& name) { return "tensor \"" + Printable(name) + "\""; }

absl::StatusOr<Tensor> ReadTensor(const SafetensorsHeader::Place& place, const ReadNext& read) {
  HT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(place.dtype, place.shape));
  if (tensor.num_bytes() == 0) return tensor;
  HT_RETURN_IF_ERROR(read(tensor.raw(), tensor.num_bytes()));
  if (place.dtype == DType::kBool) {
    const auto* const bytes = static_cast<const uint8_t*>(tensor.raw());
    for (int64_t i = 0; i < tensor.num_elements(); ++i) {
      if (bytes[i] > 1) {
        return DataLoss("bool ", i, " is ", static_cast<int>(bytes[i]), "; expected 0 or 1");
      }
    }
  }
  return tensor;
}

// `size`: of the whole file.
absl::StatusOr<Safetensors> Read(uint64_t size, const ReadNext& read) {
  uint64_t header_bytes = 0;
  if (size < sizeof(header_bytes)) {
    return InvalidArgument("not a safetensors file: has ", size, " bytes; expected at least 8");
  }
  HT_RETURN_IF_ERROR(read(&header_bytes, sizeof(header_bytes)));
  const uint64_t rest = size - sizeof(header_bytes);
  if (header_bytes == 0 || header_bytes > kMaxSafetensorsHeader) {
    return InvalidArgument("not a safetensors file: its header would have ", header_bytes,
                           " bytes; expected 1 to ", kMaxSafetensorsHeader);
  }
  if (header_bytes > rest) {
    return DataLoss("truncated in the header: got ", rest, " bytes; expected ", header_bytes);
  }
  std::string text(header_bytes, '\0');
  HT_RETURN_IF_ERROR(read(text.data(), text.size()));
  HT_ASSIGN_OR_RETURN(SafetensorsHeader header, ParseSafetensorsHeader(text));
  const uint64_t given = rest - header_bytes;
  if (given < header.end()) {
    return DataLoss("truncated: got ", given, " bytes of elements; expected ", header.end());
  }
  if (given > header.end()) {
    return InvalidArgument(given - header.end(), " bytes behind the last tensor; expected none");
  }
  Safetensors contents;
  contents.metadata = std::move(header.metadata);
  for (const SafetensorsHeader::Place& place : header.places) {
    absl::StatusOr<Tensor> tensor = ReadTensor(place, read);
    if (!tensor.ok()) return Annotate(tensor.status(), TensorCalled(place.name) + ": ");
    contents.tensors.emplace(place.name, *std::move(tensor));
  }
  return contents;
}

// The places of the tensors in the order of WriteSafetensors. Errors: InvalidArgument.
absl::StatusOr<SafetensorsHeader> HeaderOf(const Safetensors& contents) {
  SafetensorsHeader header;
  header.metadata = contents.metadata;
  for (const auto& [name, tensor] : contents.tensors) {
    if (!tensor.defined()) return InvalidArgument(TensorCalled(name), " is undefined");
    header.places.push_back({name, tensor.dtype(), tensor.shape()});
  }
  PutInOrder(header.places);
  return header;
}

}  // namespace

absl::StatusOr<Safetensors> FromSafetensorsBytes(const std::string& bytes) {
  size_t at = 0;
  return Read(bytes.size(), [&](void* data, size_t count) {
    std::memcpy(data, bytes.data() + at, count);  // the sizes were checked against the whole
    at += count;
    return absl::OkStatus();
  });
}

absl::StatusOr<Safetensors> ReadSafetensors(const std::string& path) {
  int64_t size = 0;
  HT_ASSIGN_OR_RETURN(FileHandle file, OpenRegularFile(path, &size));
  absl::StatusOr<Safetensors> contents =
      Read(static_cast<uint64_t>(size), [&](void* data, size_t bytes) -> absl::Status {
        HT_ASSIGN_OR_RETURN(const size_t read, file.Read(data, bytes));
        return read == bytes ? absl::OkStatus() : DataLoss("became shorter while it was read");
      });
  if (!contents.ok()) return Annotate(contents.status(), path + ": ");
  return contents;
}

absl::Status WriteSafetensors(const std::string& path, const Safetensors& contents) {
  const absl::StatusOr<SafetensorsHeader> header = HeaderOf(contents);
  const absl::StatusOr<std::string> text =
      header.ok() ? FormatSafetensorsHeader(*header) : header.status();
  if (!text.ok()) return Annotate(text.status(), path + ": ");
  return WriteFileAtomically(path, [&](FileHandle& file) {
    const uint64_t length = text->size();
    HT_RETURN_IF_ERROR(file.Write(&length, sizeof(length)));
    HT_RETURN_IF_ERROR(file.Write(text->data(), text->size()));
    for (const SafetensorsHeader::Place& place : header->places) {
      const Tensor& tensor = contents.tensors.at(place.name);
      HT_RETURN_IF_ERROR(file.Write(tensor.raw(), tensor.num_bytes()));
    }
    return absl::OkStatus();
  });
}

}  // namespace halftone::io
