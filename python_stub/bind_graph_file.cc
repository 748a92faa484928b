#include <pybind11/stl.h>

#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/passes/amp/report.h"
#include "halftone/python_stub/arrays.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/graph_file.h"
#include "halftone/python_stub/interpreter_lock.h"

namespace halftone::python {
namespace {

std::unique_ptr<GraphFile> Create(absl::StatusOr<std::unique_ptr<ir::Graph>> graph,
                                  const std::string& device, uint64_t seed) {
  CheckFile(graph.status());
  const Device where = ToDevice(device);
  return Unwrap(
      WithoutInterpreterLock([&] { return GraphFile::Create(*std::move(graph), where, seed); }));
}

Feeds ToFeeds(const py::dict& arrays) {
  Feeds feeds;
  for (const auto& [key, value] : arrays) {
    const auto name = py::cast<std::string>(py::str(key));
    feeds.emplace(name, ToTensor(value, Concat("input \"", name, "\"")));
  }
  return feeds;
}

void BindCheckpoints(py::module_& m) {
  using Metadata = std::map<std::string, std::string>;
  m.def(
      "read_checkpoint",
      [](const std::string& path) {
        absl::StatusOr<runtime::Checkpoint> read =
            WithoutInterpreterLock([&] { return runtime::ReadCheckpoint(path); });
        CheckFile(read.status());
        return py::make_tuple(FromStateDict(read->tensors), FromMetadata(read->metadata));
      },
      py::arg("path"), "Names and arrays, and the metadata");
  m.def(
      "write_checkpoint",
      [](const std::string& path, const py::dict& state, const Metadata& metadata) {
        const runtime::Checkpoint checkpoint{ToStateDict(state), metadata};
        CheckFile(
            WithoutInterpreterLock([&] { return runtime::WriteCheckpoint(path, checkpoint); }));
      },
      py::arg("path"), py::arg("state"), py::arg("metadata") = Metadata());
}

}  // namespace

void BindGraphFile(py::module_& m) {
  BindCheckpoints(m);
  py::class_<GraphFile>(m, "GraphFile", py::is_final(), "A step read from a file")
      .def(
          "run",
          [](GraphFile& g, const py::dict& feeds) {
            const Feeds values = ToFeeds(feeds);
            return FromStateDict(Unwrap(WithoutInterpreterLock([&] { return g.Run(values); })));
          },
          py::arg("feeds"))
      .def_property_readonly("inputs", &GraphFile::inputs)
      .def_property_readonly("outputs", &GraphFile::outputs)
      .def("state_dict",
           [](const GraphFile& g) {
             return FromStateDict(Unwrap(WithoutInterpreterLock([&] { return g.Save(); })));
           })
      .def(
          "load_state_dict",
          [](GraphFile& g, const py::dict& state, bool strict) {
            const runtime::StateDict values = ToStateDict(state);
            return Unwrap(WithoutInterpreterLock([&] { return g.Load(values, strict); }));
          },
          py::arg("state"), py::arg("strict") = true)
      .def("text", [](const GraphFile& g) { return Text(g.text()); })
      .def("compiled_text",
           [](const GraphFile& g) { return Text(ir::Print(g.executable().graph())); })
      .def("kernel_log", [](const GraphFile& g) { return Text(g.executable().kernel_log()); })
      .def("amp_table",
           [](const GraphFile& g) {
             return Text(passes::ToText(passes::MakeAmpReport(g.executable().graph())));
           })
      .def("notes", &GraphFile::notes);
  m.def(
      "load_graph",
      [](const std::string& path, const std::string& device, uint64_t seed) {
        return Create(ir::ReadGraphFile(path), device, seed);
      },
      py::arg("path"), py::kw_only(), py::arg("device") = "cpu", py::arg("seed") = 0,
      "Reads a graph in text or protobuf form and compiles it");
  m.def(
      "parse_graph",
      [](const std::string& text, const std::string& device, uint64_t seed) {
        return Create(ir::Parse(text), device, seed);
      },
      py::arg("text"), py::kw_only(), py::arg("device") = "cpu", py::arg("seed") = 0);
}

}  // namespace halftone::python
