#include "halftone/examples/support/text.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace halftone::example {
namespace {

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file.is_open() || file.bad()) return NotFound(path, ": cannot read");
  return bytes;
}

absl::StatusOr<std::string> ReadFileOrFolder(const std::string& path) {
  std::error_code error;  // whoever reads tells it
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
    if (entry.is_regular_file(error) && !entry.is_symlink(error)) files.insert(entry.path());
  }
  if (files.empty()) return ReadFile(path);
  std::string all;
  for (const std::string& file : files) {
    HT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(file));
    all += bytes;
  }
  return all;
}

}  // namespace

absl::StatusOr<Text> Text::Load(const std::string& path) {
  HT_ASSIGN_OR_RETURN(const std::string bytes, ReadFileOrFolder(path));
  if (bytes.empty()) return InvalidArgument(path, ": is empty; expected a text");
  const std::set<char> distinct(bytes.begin(), bytes.end());
  Text text;
  text.characters_.assign(distinct.begin(), distinct.end());
  for (const char c : bytes) {
    const auto at = std::lower_bound(text.characters_.begin(), text.characters_.end(), c);
    text.ids_.push_back(at - text.characters_.begin());
  }
  return text;
}

std::vector<Tensor> Text::Windows(const std::vector<int64_t>& starts, int64_t length) const {
  const auto count = static_cast<int64_t>(starts.size());
  Tensor ids = Tensor::Empty(DType::kI64, {count, length});
  Tensor next = Tensor::Empty(DType::kI64, {count * length});
  for (int64_t i = 0; i < count; ++i) {
    const int64_t* const from = ids_.data() + starts[i];
    std::copy_n(from, length, ids.data<int64_t>() + i * length);
    std::copy_n(from + 1, length, next.data<int64_t>() + i * length);
  }
  return {ids, next};
}

}  // namespace halftone::example
