// Order of the checks: sizes against the file first, then checksums, then the rules of the header;
// memory is taken for a tensor only when its bytes are known to be in the file.
#include <cstring>
#include <iomanip>
#include <set>
#include <vector>

#include "halftone/core/io/file_handle.h"
#include "halftone/core/io/file_replacement.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/proto_enums.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/graph/runtime/checkpoint_format.h"
#include "halftone/proto/checkpoint.pb.h"

namespace halftone::runtime {
namespace {

std::string Hex(uint32_t crc) {
  std::ostringstream out;
  out << std::hex << std::setw(8) << std::setfill('0') << crc;
  return out.str();
}

absl::Status CheckCrc(const std::string& what, const void* data, size_t bytes, uint32_t expected) {
  const uint32_t crc = Crc32(data, bytes);
  if (crc == expected) return absl::OkStatus();
  return DataLoss(what, " has checksum ", Hex(crc), "; expected ", Hex(expected));
}

class Reader {
 public:
  // `size`: of the file, as the system tells it.
  Reader(io::FileHandle& file, uint64_t size) : file_(file), size_(size) {}

  absl::StatusOr<Checkpoint> Run() {
    HT_RETURN_IF_ERROR(ReadPrefix());
    HT_RETURN_IF_ERROR(ReadHeader());
    HT_RETURN_IF_ERROR(CheckMetadata());
    HT_RETURN_IF_ERROR(CheckTensors());
    for (const StoredTensorProto& stored : header_.tensors()) {
      HT_RETURN_IF_ERROR(ReadTensor(stored));
    }
    return std::move(checkpoint_);
  }

 private:
  absl::Status ReadExactly(void* data, size_t bytes) {
    HT_ASSIGN_OR_RETURN(const size_t read, file_.Read(data, bytes));
    at_ += read;
    return read == bytes ? absl::OkStatus() : DataLoss("became shorter while it was read");
  }

  absl::Status ReadPrefix() {
    if (size_ < sizeof(prefix_)) {
      return DataLoss("has ", size_, " bytes; a checkpoint has at least ", sizeof(prefix_));
    }
    HT_RETURN_IF_ERROR(ReadExactly(&prefix_, sizeof(prefix_)));
    if (prefix_.magic != kCheckpointMagic) return InvalidArgument("is not a checkpoint");
    if (prefix_.version != kCheckpointVersion) {
      return InvalidArgument("is a checkpoint of version ", prefix_.version,
                             "; this build reads version ", kCheckpointVersion);
    }
    if (prefix_.file_bytes != size_) {
      return DataLoss("has ", size_, " bytes; expected ", prefix_.file_bytes);
    }
    if (prefix_.header_bytes > size_ - sizeof(prefix_) ||
        prefix_.header_bytes > kMaxCheckpointHeaderBytes) {
      return DataLoss("header of ", prefix_.header_bytes, " bytes in a file of ", size_);
    }
    return absl::OkStatus();
  }

  absl::Status ReadHeader() {
    std::string text(prefix_.header_bytes, '\0');
    HT_RETURN_IF_ERROR(ReadExactly(text.data(), text.size()));
    HT_RETURN_IF_ERROR(CheckCrc("header", text.data(), text.size(), prefix_.header_crc32));
    if (!header_.ParseFromArray(text.data(), static_cast<int>(text.size()))) {
      return DataLoss("header is not a serialised CheckpointProto");
    }
    return absl::OkStatus();
  }

  absl::Status CheckMetadata() {
    for (const MetadataProto& entry : header_.metadata()) {
      HT_RETURN_IF_ERROR(CheckCheckpointName("metadata key", entry.key()));
      if (!checkpoint_.metadata.emplace(entry.key(), entry.value()).second) {
        return InvalidArgument("metadata key ", Shown(entry.key()), " occurs twice");
      }
    }
    return absl::OkStatus();
  }

  // Everything about the tensors but their bytes.
  absl::Status CheckTensors() {
    uint64_t end = at_;
    for (const StoredTensorProto& stored : header_.tensors()) {
      if (stored.names().empty()) return InvalidArgument("a tensor has no name");
      for (const std::string& name : stored.names()) {
        HT_RETURN_IF_ERROR(CheckCheckpointName("tensor", name));
        if (!checkpoint_.tensors.emplace(name, Tensor()).second) {
          return InvalidArgument("tensor ", Shown(name), " occurs twice");
        }
      }
      if (absl::Status status = CheckPlace(stored, end); !status.ok()) {
        return Annotate(status, "tensor " + Shown(stored.names(0)) + ": ");
      }
    }
    if (end == size_) return absl::OkStatus();
    return InvalidArgument(size_ - end, " bytes behind the last tensor; expected none");
  }

  // `end`: of what lies before the tensor; then of the tensor. No sum overflows: end <= size_, and
  // a Shape's bytes fit 44 bits.
  absl::Status CheckPlace(const StoredTensorProto& stored, uint64_t& end) {
    const std::optional<DType> dtype = ir::DTypeFromProto(stored.dtype());
    if (!dtype.has_value()) return InvalidArgument("unknown dtype number ", stored.dtype());
    const std::vector<int64_t> dims(stored.dims().begin(), stored.dims().end());
    HT_ASSIGN_OR_RETURN(const Shape shape, Shape::Make(dims));
    const uint64_t bytes = static_cast<uint64_t>(shape.num_elements()) * SizeOf(*dtype);
    if (stored.bytes() != bytes) {
      return InvalidArgument(Name(*dtype), shape, " with ", stored.bytes(), " bytes; expected ",
                             bytes);
    }
    const uint64_t begin = AlignCheckpointOffset(end);
    if (stored.offset() != begin) {
      return InvalidArgument("begins at byte ", stored.offset(), "; expected ", begin,
                             ", right behind what is before it");
    }
    end = begin + bytes;
    if (end > size_) return InvalidArgument("ends at byte ", end, " of ", size_);
    return absl::OkStatus();
  }

  absl::Status ReadTensor(const StoredTensorProto& stored) {
    char padding[kCheckpointAlignment] = {};
    HT_RETURN_IF_ERROR(ReadExactly(padding, stored.offset() - at_));
    const std::string what = "tensor " + Shown(stored.names(0));
    for (const char byte : padding) {
      if (byte != 0) return DataLoss("the padding before ", what, " is not 0");
    }
    const std::vector<int64_t> dims(stored.dims().begin(), stored.dims().end());
    HT_ASSIGN_OR_RETURN(Tensor tensor,
                        Tensor::Allocate(*ir::DTypeFromProto(stored.dtype()), Shape(dims)));
    HT_RETURN_IF_ERROR(ReadExactly(tensor.raw(), tensor.num_bytes()));
    HT_RETURN_IF_ERROR(CheckCrc(what, tensor.raw(), tensor.num_bytes(), stored.crc32()));
    if (tensor.dtype() == DType::kBool) {
      const auto* bytes = static_cast<const uint8_t*>(tensor.raw());
      for (int64_t i = 0; i < tensor.num_elements(); ++i) {
        if (bytes[i] > 1) return DataLoss(what, " holds a byte that is not 0 or 1");
      }
    }
    for (const std::string& name : stored.names()) checkpoint_.tensors[name] = tensor;
    return absl::OkStatus();
  }

  static std::string Shown(const std::string& name) { return ir::Quote(name.substr(0, 80)); }

  io::FileHandle& file_;
  const uint64_t size_;
  uint64_t at_ = 0;  // bytes read so far
  CheckpointPrefix prefix_ = {};
  CheckpointProto header_;
  Checkpoint checkpoint_;
};

}  // namespace

absl::StatusOr<Checkpoint> ReadCheckpoint(const std::string& path) {
  int64_t size = 0;
  HT_ASSIGN_OR_RETURN(io::FileHandle file, io::OpenRegularFile(path, &size));
  absl::StatusOr<Checkpoint> checkpoint = Reader(file, static_cast<uint64_t>(size)).Run();
  // An error of the system names the path already.
  if (checkpoint.ok() || absl::IsFailedPrecondition(checkpoint.status())) return checkpoint;
  return Annotate(checkpoint.status(), path + ": ");
}

absl::StatusOr<Checkpoint> ReadLatestCheckpoint(const std::string& path, std::string* note) {
  note->clear();
  absl::StatusOr<Checkpoint> latest = ReadCheckpoint(path);
  if (latest.ok()) return latest;
  absl::StatusOr<Checkpoint> previous = ReadCheckpoint(io::PreviousPath(path));
  if (absl::IsNotFound(previous.status())) return latest;
  // NotFound must mean that there is nothing to lose.
  if (!previous.ok() && absl::IsNotFound(latest.status())) return previous;
  if (!previous.ok()) return Annotate(previous.status(), Message(latest.status()) + "; ");
  *note = Concat(Message(latest.status()), "; read ", io::PreviousPath(path), " instead");
  return previous;
}

}  // namespace halftone::runtime
