// A text as the numbers of its characters, and windows of it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "halftone/core/tensor.h"

namespace halftone::example {

class Text {
 public:
  // The bytes of a file, or of the files of a folder in the order of their names, but for links and
  // what lies deeper. Errors: NotFound (it cannot be read); InvalidArgument
  // (no bytes).
  static absl::StatusOr<Text> Load(const std::string& path);

  int64_t size() const { return static_cast<int64_t>(ids_.size()); }
  // Ids are below it: one for each byte value that occurs, in their order.
  int64_t num_characters() const { return static_cast<int64_t>(characters_.size()); }
  // Of each start the `length` characters from there and those that follow each of them: ids
  // [starts,length] i64, next ids [starts * length] i64. Requires: starts in 0..size() - length - 1.
  std::vector<Tensor> Windows(const std::vector<int64_t>& starts, int64_t length) const;

 private:
  std::string characters_;
  std::vector<int64_t> ids_;
};

}  // namespace halftone::example
