#include "halftone/python_stub/load_state.h"

#include <pybind11/stl.h>

#include <exception>
#include <utility>
#include <vector>

#include "halftone/graph/runtime/load_rename.h"
#include "halftone/python_stub/interpreter_lock.h"

namespace halftone::python {
namespace {

constexpr char kExpected[] =
    "; expected None, a dict or a list of pairs of str, or a function from str to str";

// Of a function: its exception is kept, for it must not pass through the library.
struct Called {
  py::object function;
  std::exception_ptr raised;

  std::string operator()(const std::string& name) {
    if (raised != nullptr) return "";
    try {
      const py::object renamed = function(name);
      if (!py::isinstance<py::str>(renamed)) {
        RaiseTypeError(Concat("rename(\"", name, "\") gave ", TypeName(renamed), "; expected str"));
      }
      return py::cast<std::string>(renamed);
    } catch (...) {
      raised = std::current_exception();
      return "";
    }
  }
};

}  // namespace

runtime::LoadReport LoadState(const runtime::StateDict& state, const LoadRule& rule,
                              const py::object& rename, const std::string& where,
                              const LoadRenamed& load) {
  runtime::LoadOptions options;
  Called called{rename, nullptr};
  if (!rename.is_none() && PyCallable_Check(rename.ptr()) != 0) {
    options.rename_with = [&called](const std::string& name) { return called(name); };
  } else if (!rename.is_none()) {
    const bool is_dict = py::isinstance<py::dict>(rename);
    const py::object pairs = is_dict ? rename.attr("items")() : rename;
    try {
      options.rename = py::cast<std::vector<std::pair<std::string, std::string>>>(py::list(pairs));
    } catch (const std::exception&) {  // not a sequence, or of something else
      RaiseTypeError(Concat("rename is ", py::cast<std::string>(py::repr(rename)), kExpected));
    }
  }
  std::vector<std::string> unused;
  const absl::StatusOr<runtime::StateDict> renamed = Renamed(state, options, &unused);
  if (called.raised != nullptr) std::rethrow_exception(called.raised);
  Check(Annotate(renamed.status(), where));
  absl::StatusOr<runtime::LoadReport> report = WithoutInterpreterLock(
      [&] { return load(*renamed, {.strict = rule.strict, .convert = rule.convert}); });
  Check(Annotate(report.status(), where));
  report->unused_renames = std::move(unused);
  return *std::move(report);
}

}  // namespace halftone::python
