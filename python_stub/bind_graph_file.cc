#include <pybind11/stl.h>

#include <filesystem>
#include <optional>
#include <system_error>

#include "halftone/graph/ir/proto.h"
#include "halftone/graph/ir/text.h"
#include "halftone/graph/nn/model_file.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/graph/runtime/convert_model.h"
#include "halftone/graph/runtime/executable.h"
#include "halftone/graph/runtime/graph_file.h"
#include "halftone/passes/amp/report.h"
#include "halftone/python_stub/arrays.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/interpreter_lock.h"

namespace halftone::python {
namespace {

using runtime::Feeds;
using runtime::GraphFile;

std::unique_ptr<GraphFile> Create(ir::Model model, const Device& device, uint64_t seed) {
  return Unwrap(
      WithoutInterpreterLock([&] { return GraphFile::Create(std::move(model), device, seed); }));
}

// A graph in a file has no values, a folder or an ONNX model has them.
absl::StatusOr<ir::Model> ReadFile(const std::string& path) {
  std::error_code ignored;
  if (path.ends_with(".onnx") || std::filesystem::is_directory(path, ignored)) {
    return nn::ReadModel(path);
  }
  ir::Model model;
  HT_ASSIGN_OR_RETURN(model.graph, ir::ReadGraphFile(path));
  return model;
}

std::unique_ptr<GraphFile> Convert(const GraphFile& file, const py::object& dtype,
                                   const std::optional<amp::Policy>& policy, bool cast_parameters) {
  amp::Policy chosen = policy.value_or(amp::Policy());
  if (!dtype.is_none()) chosen.dtype = ToDType(dtype);
  const amp::ConvertOptions options{.cast_parameters = cast_parameters, .device = file.device()};
  return Unwrap(WithoutInterpreterLock([&]() -> absl::StatusOr<std::unique_ptr<GraphFile>> {
    HT_ASSIGN_OR_RETURN(const ir::Model model, file.model());
    HT_ASSIGN_OR_RETURN(ir::Model converted, amp::ConvertModel(model, chosen, options));
    return GraphFile::Create(std::move(converted), file.device());
  }));
}

std::unique_ptr<GraphFile> RemoveCasts(const GraphFile& file) {
  return Unwrap(WithoutInterpreterLock([&]() -> absl::StatusOr<std::unique_ptr<GraphFile>> {
    HT_ASSIGN_OR_RETURN(const ir::Model model, file.model());
    HT_ASSIGN_OR_RETURN(ir::Model plain, amp::RemoveAmpCasts(model));
    return GraphFile::Create(std::move(plain), file.device());
  }));
}

void BindConversion(py::module_ m) {
  m.def("convert_model", &Convert, py::arg("model"), py::arg("dtype") = py::none(), py::kw_only(),
        py::arg("policy") = py::none(), py::arg("cast_parameters") = false,
        "A trained model for inference in 16 bit");
  m.def("remove_casts", &RemoveCasts, py::arg("model"),
        "What convert_model has inserted, taken out");
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
      .def(
          "save",
          [](const GraphFile& g, const std::string& path) {
            CheckFile(WithoutInterpreterLock([&]() -> absl::Status {
              HT_ASSIGN_OR_RETURN(const ir::Model model, g.model());
              return nn::WriteModel(path, model);
            }));
          },
          py::arg("path"))
      .def("text", [](const GraphFile& g) { return Text(ir::Print(g.graph())); })
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
        const Device where = ToDevice(device);
        absl::StatusOr<ir::Model> model = WithoutInterpreterLock([&] { return ReadFile(path); });
        CheckFile(model.status());
        return Create(*std::move(model), where, seed);
      },
      py::arg("path"), py::kw_only(), py::arg("device") = "cpu", py::arg("seed") = 0,
      "Reads a graph in text or protobuf form, an ONNX model or a folder, and compiles it");
  m.def(
      "parse_graph",
      [](const std::string& text, const std::string& device, uint64_t seed) {
        ir::Model model;
        model.graph = Unwrap(ir::Parse(text));
        return Create(std::move(model), ToDevice(device), seed);
      },
      py::arg("text"), py::kw_only(), py::arg("device") = "cpu", py::arg("seed") = 0);
  BindConversion(py::reinterpret_borrow<py::module_>(m.attr("amp")));
}

}  // namespace halftone::python
