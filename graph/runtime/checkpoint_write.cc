#include <zlib.h>

#include <algorithm>
#include <vector>

#include "halftone/core/io/file_replacement.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/proto_enums.h"
#include "halftone/graph/ir/text_format.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/graph/runtime/checkpoint_format.h"
#include "halftone/proto/checkpoint.pb.h"

namespace halftone::runtime {
namespace {

bool SameTensor(const Tensor& a, const Tensor& b) {
  return a.raw() == b.raw() && a.dtype() == b.dtype() && a.shape() == b.shape();
}

// The header of `state`, offsets still missing, and its tensors in the same order.
absl::StatusOr<CheckpointProto> Describe(const Checkpoint& checkpoint,
                                         std::vector<Tensor>& tensors) {
  CheckpointProto header;
  std::map<const void*, std::vector<int>> at_address;  // indices of tensors
  for (const auto& [name, tensor] : checkpoint.tensors) {
    HT_RETURN_IF_ERROR(CheckCheckpointName("tensor", name));
    if (!tensor.defined()) {
      return InvalidArgument("tensor ", ir::Quote(name), " is an undefined tensor");
    }
    std::vector<int>& known = at_address[tensor.raw()];
    const auto same = std::find_if(known.begin(), known.end(),
                                   [&](int i) { return SameTensor(tensors[i], tensor); });
    if (same != known.end()) {
      header.mutable_tensors(*same)->add_names(name);
      continue;
    }
    known.push_back(header.tensors_size());
    tensors.push_back(tensor);
    StoredTensorProto& stored = *header.add_tensors();
    stored.add_names(name);
    stored.set_dtype(static_cast<DTypeProto>(ir::ToProtoNumber(tensor.dtype())));
    for (const int64_t dim : tensor.shape().dims()) stored.add_dims(dim);
    stored.set_bytes(tensor.num_bytes());
    stored.set_crc32(Crc32(tensor.raw(), tensor.num_bytes()));
    stored.set_offset(UINT64_MAX);  // holds the place: 0 would not be stored
  }
  for (const auto& [key, value] : checkpoint.metadata) {
    HT_RETURN_IF_ERROR(CheckCheckpointName("metadata key", key));
    MetadataProto& entry = *header.add_metadata();
    entry.set_key(key);
    entry.set_value(value);
  }
  return header;
}

absl::StatusOr<std::string> Serialise(CheckpointProto& header, CheckpointPrefix& prefix) {
  const uint64_t header_bytes = header.ByteSizeLong();
  if (header_bytes > kMaxCheckpointHeaderBytes) {
    return InvalidArgument("names and metadata take ", header_bytes, " bytes; expected at most ",
                           kMaxCheckpointHeaderBytes);
  }
  uint64_t end = sizeof(prefix) + header_bytes;
  for (StoredTensorProto& stored : *header.mutable_tensors()) {
    stored.set_offset(AlignCheckpointOffset(end));
    end = stored.offset() + stored.bytes();
  }
  std::string text = header.SerializeAsString();
  HT_CHECK(text.size() == header_bytes, "offsets change the size of the header");
  prefix = {kCheckpointMagic, kCheckpointVersion, Crc32(text.data(), text.size()), header_bytes,
            end};
  return text;
}

absl::Status WriteTo(io::FileReplacement& file, const CheckpointPrefix& prefix,
                     const std::string& header_text, const CheckpointProto& header,
                     const std::vector<Tensor>& tensors) {
  HT_RETURN_IF_ERROR(file.Write(&prefix, sizeof(prefix)));
  HT_RETURN_IF_ERROR(file.Write(header_text.data(), header_text.size()));
  uint64_t at = sizeof(prefix) + header_text.size();
  for (size_t i = 0; i < tensors.size(); ++i) {
    const std::string padding(header.tensors(static_cast<int>(i)).offset() - at, '\0');
    HT_RETURN_IF_ERROR(file.Write(padding.data(), padding.size()));
    HT_RETURN_IF_ERROR(file.Write(tensors[i].raw(), tensors[i].num_bytes()));
    at += padding.size() + tensors[i].num_bytes();
  }
  return file.Commit();
}

}  // namespace

absl::Status CheckCheckpointName(const char* what, const std::string& name) {
  if (!name.empty() && name.size() <= ir::kMaxStringBytes) return absl::OkStatus();
  return InvalidArgument(what, " ", ir::Quote(name.substr(0, 80)), " has ", name.size(),
                         " bytes; expected 1 to ", ir::kMaxStringBytes);
}

uint32_t Crc32(const void* data, size_t bytes) {
  return static_cast<uint32_t>(crc32_z(0, static_cast<const Bytef*>(data), bytes));
}

absl::Status WriteCheckpoint(const std::string& path, const Checkpoint& checkpoint) {
  std::vector<Tensor> tensors;
  absl::StatusOr<CheckpointProto> header = Describe(checkpoint, tensors);
  if (!header.ok()) return Annotate(header.status(), path + ": ");
  CheckpointPrefix prefix = {};
  const absl::StatusOr<std::string> text = Serialise(*header, prefix);
  if (!text.ok()) return Annotate(text.status(), path + ": ");
  HT_ASSIGN_OR_RETURN(io::FileReplacement file, io::FileReplacement::Begin(path));
  return WriteTo(file, prefix, *text, *header, tensors);
}

}  // namespace halftone::runtime
