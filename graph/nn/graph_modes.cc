// Training and evaluation mode of each module, as a part of the key under which a compiled step is
// kept.
#include <algorithm>
#include <map>
#include <string>

#include "halftone/graph/nn/graph_impl.h"
#include "halftone/graph/nn/module_util.h"

namespace halftone::nn {

void Graph::Impl::ReadModes() {
  const uint64_t version = internal::ModesVersion();
  if (version == modes_version) return;
  modes_version = version;
  std::vector<uint8_t> in_training, in_evaluation;
  for (const auto& [module, module_info] : info.modules) {
    const auto wish = static_cast<uint8_t>(module->amp_request() + 1);
    in_evaluation.push_back(wish);
    in_training.push_back(static_cast<uint8_t>(wish | (module->is_training() ? 4 : 0) |
                                               (module->is_frozen() ? 8 : 0)));
  }
  for (const auto& [name, storage] : bound) in_training.push_back(storage->trainable());
  modes = {IndexOfModes(std::move(in_training)), IndexOfModes(std::move(in_evaluation))};
}

size_t Graph::Impl::IndexOfModes(std::vector<uint8_t> set) {
  const auto found = std::find(mode_sets.begin(), mode_sets.end(), set);
  const auto index = static_cast<size_t>(found - mode_sets.begin());
  if (found == mode_sets.end()) mode_sets.push_back(std::move(set));
  return index;
}

std::string Graph::Impl::ModesRemark() const {
  if (!training) return "";
  std::map<std::string, const Module*> by_path;
  for (const auto& [module, module_info] : info.modules) by_path[module_info.path] = module;
  std::string evaluating, trained;
  for (const auto& [path, module] : by_path) {
    const std::vector<const Module*>& parents = info.modules.at(module).parents;
    const bool as_around = std::any_of(parents.begin(), parents.end(), [&](const Module* parent) {
      return parent->is_training() == module->is_training() &&
             parent->is_frozen() == module->is_frozen();
    });
    if (as_around || (parents.empty() && module->is_training())) continue;
    std::string& list = module->is_training() ? trained : evaluating;
    list += (list.empty() ? "" : ", ") + path + (module->is_frozen() ? " (frozen)" : "");
  }
  if (!evaluating.empty()) evaluating = "in evaluation mode: " + evaluating;
  if (!trained.empty()) trained = "; in training mode: " + trained;
  return evaluating + trained;
}

}  // namespace halftone::nn
