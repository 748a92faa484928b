// load_state_dict and load_checkpoint of graphs and modules: what both make of their arguments.
#pragma once

#include <functional>
#include <string>

#include "halftone/graph/runtime/load_options.h"
#include "halftone/python_stub/errors.h"

namespace halftone::python {

// What of runtime::LoadOptions is given as it is.
struct LoadRule {
  bool strict, convert;
};
using LoadRenamed = std::function<absl::StatusOr<runtime::LoadReport>(const runtime::StateDict&,
                                                                      const runtime::LoadOptions&)>;

// Gives the state under its new names to `load`. `rename`: None, patterns as a dict or a sequence
// of pairs of str, or a function from str to str, whose exceptions pass through before anything
// has changed. Errors: TypeError for another `rename`; of Renamed and `load`, after `where`.
runtime::LoadReport LoadState(const runtime::StateDict& state, const LoadRule& rule,
                              const py::object& rename, const std::string& where,
                              const LoadRenamed& load);

}  // namespace halftone::python
