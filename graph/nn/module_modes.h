// ModuleModes: training and evaluation mode, freezing, wishes for precision and for recomputation
// of a graph's modules, as a number for the key under which a compiled step is kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "halftone/graph/nn/declaration.h"

namespace halftone::nn {

class ModuleModes {
 public:
  // The number of what holds now. Looks at the modules only if any changed anywhere.
  size_t Read(const Declaration& declared, bool training);

 private:
  size_t IndexOf(std::vector<uint8_t> set);

  // Combinations that were met; an index into them stands for one.
  std::vector<std::vector<uint8_t>> sets_;
  // Those that held at internal::ModesVersion() == version_.
  size_t training_ = 0, evaluation_ = 0;
  uint64_t version_ = 0;
};

// For people: "in evaluation mode: trunk (frozen), head/drop", the modules whose mode is not that
// of the modules around them. Empty where all train.
std::string ModesRemark(const internal::GraphInfo& info);

}  // namespace halftone::nn
