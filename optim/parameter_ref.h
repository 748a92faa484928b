// How an optimizer names the parameters it updates: by the object that owns the value, so that two
// graphs which share a module share its parameters whatever each graph calls them.
#pragma once

#include <memory>
#include <vector>

namespace halftone::runtime {
class VariableStorage;
}

namespace halftone::optim {

using ParameterRef = std::shared_ptr<runtime::VariableStorage>;
using ParameterList = std::vector<ParameterRef>;

}  // namespace halftone::optim
