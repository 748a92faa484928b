// StepCache: the compiled steps that a graph keeps, the most recently used first.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "halftone/graph/nn/compiled_step.h"

namespace halftone::nn {

class StepCache {
 public:
  // The step for these inputs, configuration and modes, which comes to the front; null if there is
  // none. Allocates nothing.
  CompiledStep* Find(absl::Span<const Tensor> in, const StepConfig& config, bool training,
                     size_t modes);
  // At the front.
  CompiledStep* Add(std::unique_ptr<CompiledStep> step);
  // Forgets all but the `count` steps used last. None of the others may be under way.
  void Keep(size_t count);

  size_t size() const { return steps_.size(); }
  // The one used last; null if there is none.
  const CompiledStep* last() const { return steps_.empty() ? nullptr : steps_.front().get(); }
  const std::vector<std::unique_ptr<CompiledStep>>& steps() const { return steps_; }

 private:
  std::vector<std::unique_ptr<CompiledStep>> steps_;
};

}  // namespace halftone::nn
