#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "halftone/graph/nn/run_log.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/errors.h"
#include "halftone/python_stub/interpreter_lock.h"
#include "halftone/python_stub/python_graph.h"

namespace halftone::python {
namespace {

// An nn::RunLog that knows when its graph is gone: as an attribute of the graph it may not hold it.
class RunLog {
 public:
  RunLog(const PythonGraph& graph, const std::string& folder, int64_t every, std::string items)
      : alive_(graph.alive()),
        graph_(&graph),
        log_(graph, folder, {.every = every, .items = std::move(items)}) {}
  ~RunLog() {
    WithoutInterpreterLock([this] { log_.flush(); });
  }
  RunLog(const RunLog&) = delete;
  RunLog& operator=(const RunLog&) = delete;

  void AddStep(const std::map<std::string, double>& numbers, int64_t items) {
    std::vector<nn::RunLog::Number> named;
    for (const auto& [tag, value] : numbers) named.emplace_back(tag, value);
    const py::object graph = Graph();
    WithoutInterpreterLock([&] { log_.add_step(named, items); });
  }
  void AddScalar(const std::string& tag, double value) {
    const py::object graph = Graph();
    WithoutInterpreterLock([&] { log_.add_scalar(tag, value); });
  }
  void SkipTime() { log_.skip_time(); }
  void Flush() {
    WithoutInterpreterLock([this] { log_.flush(); });
  }
  py::object Error() const {
    if (log_.status().ok()) return py::none();
    return Text(Message(log_.status()));
  }
  py::str Path() const { return Text(log_.path()); }

 private:
  // Kept, since other threads may drop it meanwhile.
  py::object Graph() const {
    if (alive_.expired()) Raise(FailedPrecondition("RunLog: its graph no longer exists"));
    return py::cast(graph_);
  }

  std::weak_ptr<void> alive_;
  const PythonGraph* graph_;  // valid while alive_ is
  nn::RunLog log_;
};

}  // namespace

void BindRunLog(py::module_& m) {
  py::class_<RunLog>(m, "RunLog", py::is_final())
      .def(py::init<const PythonGraph&, const std::string&, int64_t, std::string>(),
           py::arg("graph"), py::arg("folder"), py::kw_only(), py::arg("every") = 1,
           py::arg("items") = "images")
      .def("add_step", &RunLog::AddStep, py::arg("numbers"), py::arg("items") = 0)
      .def("add_scalar", &RunLog::AddScalar, py::arg("tag"), py::arg("value"))
      .def("skip_time", &RunLog::SkipTime)
      .def("flush", &RunLog::Flush)
      .def_property_readonly("error", &RunLog::Error)
      .def_property_readonly("path", &RunLog::Path);
}

}  // namespace halftone::python
