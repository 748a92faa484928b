#include "halftone/graph/nn/module_modes.h"

#include <algorithm>
#include <map>

#include "halftone/graph/nn/module_util.h"

namespace halftone::nn {
namespace {

// Their count and each of them, in four bytes a number.
void AppendPositions(const std::vector<int>& positions, std::vector<uint8_t>& set) {
  const auto append = [&set](size_t number) {
    for (int shift = 0; shift < 32; shift += 8)
      set.push_back(static_cast<uint8_t>(number >> shift));
  };
  append(positions.size());
  for (const int position : positions) append(static_cast<size_t>(position));
}

}  // namespace

size_t ModuleModes::Read(const Declaration& declared, bool training) {
  const uint64_t version = internal::ModesVersion();
  if (version == version_) return training ? training_ : evaluation_;
  version_ = version;
  std::vector<uint8_t> in_training, in_evaluation;
  for (const auto& [module, module_info] : declared.info().modules) {
    const ModuleAmp& amp = module->amp();
    const auto wish = static_cast<uint8_t>(module->amp_request() + 1 + (amp.fp32_outputs ? 32 : 0) +
                                           (amp.fp32_inputs.empty() ? 0 : 64));
    in_evaluation.push_back(wish);
    in_training.push_back(static_cast<uint8_t>(wish | (module->is_training() ? 4 : 0) |
                                               (module->is_frozen() ? 8 : 0) |
                                               (module->recomputes() ? 16 : 0)));
    if (amp.fp32_inputs.empty()) continue;
    for (std::vector<uint8_t>* set : {&in_training, &in_evaluation}) {
      AppendPositions(amp.fp32_inputs, *set);
    }
  }
  for (const auto& [name, storage] : declared.bound()) in_training.push_back(storage->trainable());
  training_ = IndexOf(std::move(in_training));
  evaluation_ = IndexOf(std::move(in_evaluation));
  return training ? training_ : evaluation_;
}

size_t ModuleModes::IndexOf(std::vector<uint8_t> set) {
  const auto found = std::find(sets_.begin(), sets_.end(), set);
  const auto index = static_cast<size_t>(found - sets_.begin());
  if (found == sets_.end()) sets_.push_back(std::move(set));
  return index;
}

std::string ModesRemark(const internal::GraphInfo& info) {
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
