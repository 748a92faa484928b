#include "halftone/graph/ir/constant_file.h"

#include "halftone/core/io/file.h"
#include "halftone/core/philox.h"
#include "halftone/graph/ir/graph.h"
#include "halftone/graph/ir/limits.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/ir/text_format.h"

namespace halftone::ir {
namespace {

constexpr size_t kHexDigits = 16;

std::string NameOfBytes(const char* data, size_t size) {
  uint64_t hash = HashName(data, size);
  std::string name(kHexDigits, '0');
  for (size_t i = kHexDigits; i-- > 0; hash >>= 4) name[i] = "0123456789abcdef"[hash & 15];
  return name + ".bin";
}

bool IsConstantFileName(const std::string& name) {
  return name.size() == kHexDigits + 4 && name.substr(kHexDigits) == ".bin" &&
         name.find_first_not_of("0123456789abcdef") == kHexDigits;
}

}  // namespace

ConstantForms::Form ConstantForms::Next(const Tensor& tensor) {
  const int64_t bytes = static_cast<int64_t>(tensor.num_bytes());
  if (IsSplat(tensor) && bytes <= kMaxSplatBytes - splat_bytes_) {
    splat_bytes_ += bytes;
    return Form::kSplat;
  }
  return files_ && tensor.num_elements() > kMaxInlineElements ? Form::kFile : Form::kDense;
}

std::string ConstantFileName(const Tensor& tensor) {
  return NameOfBytes(static_cast<const char*>(tensor.raw()), tensor.num_bytes());
}

absl::Status WriteConstantFile(const Tensor& tensor, const std::string& dir) {
  const std::string path = dir + "/" + ConstantFileName(tensor);
  const std::string bytes(static_cast<const char*>(tensor.raw()), tensor.num_bytes());
  const auto present = io::ReadFile(path, static_cast<int64_t>(bytes.size()));
  if (present.ok() && *present == bytes) return absl::OkStatus();
  return io::WriteFileAtomically(path, bytes);
}

absl::StatusOr<Tensor> ReadConstantFile(const std::string& dir, const std::string& name,
                                        DType dtype, const Shape& shape) {
  if (!IsConstantFileName(name)) {
    return InvalidArgument("constant file ", Quote(name.substr(0, 80)),
                           "; expected 16 hexadecimal digits and .bin");
  }
  const std::string path = dir + "/" + name;
  HT_ASSIGN_OR_RETURN(const std::string bytes,
                      io::ReadFile(path, static_cast<int64_t>(kMaxFileBytes)));
  if (NameOfBytes(bytes.data(), bytes.size()) != name) {
    return DataLoss(path, ": its bytes do not have the hash in its name");
  }
  auto tensor = TensorFromBytes(dtype, shape, bytes);
  if (!tensor.ok()) return Annotate(tensor.status(), path + ": ");
  return tensor;
}

absl::StatusOr<Tensor> TensorFromBytes(DType dtype, const Shape& shape, const std::string& bytes) {
  const int64_t expected = shape.num_elements() * static_cast<int64_t>(SizeOf(dtype));
  if (static_cast<int64_t>(bytes.size()) != expected) {
    return DataLoss("tensor ", Name(dtype), shape, " has ", bytes.size(), " bytes; expected ",
                    expected);
  }
  if (dtype == DType::kBool && bytes.find_first_not_of(std::string("\0\1", 2)) != bytes.npos) {
    return DataLoss("tensor ", Name(dtype), shape, " holds a byte that is not 0 or 1");
  }
  HT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Allocate(dtype, shape));
  if (!bytes.empty()) std::memcpy(tensor.raw(), bytes.data(), bytes.size());
  return tensor;
}

absl::Status WriteConstantFiles(const Graph& graph, const std::string& dir) {
  ConstantForms forms(/*files=*/true);
  for (const auto& node : graph.nodes()) {
    for (const auto& [name, value] : node->attrs().entries()) {
      const Tensor* tensor = std::get_if<Tensor>(&value);
      if (tensor == nullptr || !tensor->defined()) continue;
      if (forms.Next(*tensor) != ConstantForms::Form::kFile) continue;
      HT_RETURN_IF_ERROR(WriteConstantFile(*tensor, dir));
    }
  }
  return absl::OkStatus();
}

}  // namespace halftone::ir
