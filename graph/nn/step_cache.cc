#include "halftone/graph/nn/step_cache.h"

#include <algorithm>
#include <utility>

namespace halftone::nn {

CompiledStep* StepCache::Find(absl::Span<const Tensor> in, const StepConfig& config, bool training,
                              size_t modes) {
  const auto fits = [&](const std::unique_ptr<CompiledStep>& step) {
    if (step->training != training || step->modes != modes || step->inputs.size() != in.size())
      return false;
    for (size_t i = 0; i < in.size(); ++i) {
      if (step->inputs[i].dtype != in[i].dtype() || step->inputs[i].shape != in[i].shape()) {
        return false;
      }
    }
    return step->config == config;
  };
  const auto found = std::find_if(steps_.begin(), steps_.end(), fits);
  if (found == steps_.end()) return nullptr;
  std::rotate(steps_.begin(), found, found + 1);
  return steps_.front().get();
}

CompiledStep* StepCache::Add(std::unique_ptr<CompiledStep> step) {
  return steps_.insert(steps_.begin(), std::move(step))->get();
}

void StepCache::Keep(size_t count) { steps_.resize(std::min(steps_.size(), count)); }

}  // namespace halftone::nn
