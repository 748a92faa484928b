// Sequential: modules one after another, named "0", "1", ...
#pragma once

#include "halftone/graph/nn/module_list.h"

namespace halftone::nn {

// A ModuleList with a forward(): the output of each module is the input of the next.
// Example: nn::Sequential trunk(nn::Linear(8, 16), nn::ReLU(), nn::Linear(16, 2));
class Sequential : public ModuleList {
 public:
  using ModuleList::ModuleList;
  Value forward(const Value& x) override;
  std::string description() const override;
};

}  // namespace halftone::nn
