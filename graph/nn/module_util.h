// Helpers that modules and graphs share: checks of extents, the list of parameters an optimizer
// takes, and counters by which a graph notices that modules have changed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/nn/parameter.h"

namespace halftone::nn::internal {

struct NamedInt {
  const char* name;
  int64_t value;
};

// Every value at least 1. Error: InvalidArgument "Linear: in_features is -3; expected at least 1".
absl::Status CheckPositive(const char* module, std::initializer_list<NamedInt> values);

// PyTorch's kaiming_uniform with a = sqrt(5), whose gain cancels: uniform in +-1/sqrt(fan_in).
ir::Initializer UniformOfFanIn(int64_t fan_in);

// What an optimizer takes: each once, since tied parameters have two names and are one.
std::vector<std::shared_ptr<runtime::VariableStorage>> DistinctStorages(
    const std::vector<std::pair<std::string, Parameter>>& named);

// Grows with every assignment of a parameter and every new member of a module, anywhere in the
// process. Graphs that see another number look whether their names still hold.
uint64_t StructureVersion();
void NoteStructureChange();

// Grows whenever a module's mode or wish, or a parameter's requires_grad, is set anywhere in the
// process. Graphs that see another number look at their modules.
uint64_t ModesVersion();
void NoteModeChange();

}  // namespace halftone::nn::internal
