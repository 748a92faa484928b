#include <pybind11/stl.h>

#include <map>
#include <memory>
#include <optional>
#include <set>

#include "halftone/graph/ir/graph.h"
#include "halftone/graph/nn/ema_scope.h"
#include "halftone/graph/runtime/checkpoint.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/collect.h"
#include "halftone/python_stub/interpreter_lock.h"
#include "halftone/python_stub/load_state.h"
#include "halftone/python_stub/python_graph.h"
#include "halftone/python_stub/tracing.h"
#include "halftone/python_stub/weak_handle.h"

namespace halftone::python {
namespace {

// Constructors raise at once: the traceback has the line.
constexpr nn::Loc kNoLine;

using Metadata = std::map<std::string, std::string>;

// A function of a graph that waits for calls of other threads.
template <typename R, typename... Args>
auto Locked(R (nn::Graph::*f)(Args...) const) {
  return [f](const PythonGraph& graph, Args... args) {
    const GraphLock lock(graph);
    return (graph.*f)(args...);
  };
}

template <typename R, typename... Args>
auto Locked(R (nn::Graph::*f)(Args...)) {
  return [f](PythonGraph& graph, Args... args) {
    const GraphLock lock(graph);
    return (graph.*f)(args...);
  };
}

void Adopt(py::handle self, const std::string& name, py::handle module) {
  auto& graph = py::cast<PythonGraph&>(self);
  graph.add_module(name, py::cast<nn::Module&>(module), kNoLine);
  RaiseTraceError();  // inside build()
  py::detail::keep_alive_impl(self, module);
  Check(graph.TakeStatus());
  graph.adopted().push_back(&py::cast<nn::Module&>(module));
}

// Assigning a module or parameter as an attribute adds it under that name.
void SetGraphAttribute(const py::object& self, const py::str& name, const py::object& value) {
  if (PyObject_GenericSetAttr(self.ptr(), name.ptr(), value.ptr()) != 0) {
    throw py::error_already_set();
  }
  if (py::isinstance<nn::Module>(value)) {
    Adopt(self, py::cast<std::string>(name), value);
  } else if (py::isinstance<nn::Parameter>(value)) {
    auto& graph = py::cast<PythonGraph&>(self);
    const auto own_name = py::cast<std::string>(name);
    const auto parameter = py::cast<nn::Parameter>(value);
    if (Retie(graph.named_parameters(), own_name, parameter)) return;
    graph.add_parameter(own_name, OwnHandle(parameter), kNoLine);
    RaiseTraceError();
    Check(graph.TakeStatus());
  }
}

// `by`: patterns over names, or a function of name and parameter. Gives what matches and the rest.
std::pair<std::vector<nn::Parameter>, std::vector<nn::Parameter>> Split(
    const nn::NamedParameters& named, const py::object& by) {
  nn::ParameterSplit split;
  if (PyCallable_Check(by.ptr()) != 0) {
    std::set<std::string> matching;  // asked here: no exception passes through the library
    for (const auto& [name, parameter] : named) {
      if (py::cast<bool>(py::bool_(by(Text(name), parameter)))) matching.insert(name);
    }
    split = nn::split_parameters(named, [&matching](const std::string& name, const nn::Parameter&) {
      return matching.count(name) != 0;
    });
  } else if (py::isinstance<py::str>(by)) {
    RaiseTypeError("split_parameters: got a str; expected a list of patterns, or a function");
  } else {
    split = Unwrap(nn::split_parameters(named, py::cast<std::vector<std::string>>(by)));
  }
  const auto parameters = [&named](const optim::ParameterList& list) {
    std::map<const void*, nn::Parameter> by_storage;
    for (const auto& [name, parameter] : named) {
      by_storage.emplace(parameter.storage().get(), parameter);
    }
    std::vector<nn::Parameter> found;
    for (const optim::ParameterRef& storage : list) found.push_back(by_storage.at(storage.get()));
    return found;
  };
  return {parameters(split.matching), parameters(split.rest)};
}

// Attributes that hold parameters of `self` have the tensors that those have now.
void RefreshAttributes(const py::object& self,
                       const std::vector<std::pair<std::string, nn::Parameter>>& parameters) {
  if (!py::hasattr(self, "__dict__")) return;
  const py::dict attributes = self.attr("__dict__");
  for (const auto& [name, parameter] : parameters) {
    const py::str key(name);
    if (!attributes.contains(key) || !py::isinstance<nn::Parameter>(attributes[key])) continue;
    attributes[key] = py::cast(OwnHandle(parameter));
  }
}

void RefreshAttributes(const nn::Module& module) {
  RefreshAttributes(py::cast(&module, py::return_value_policy::reference),
                    module.named_parameters());
  for (const auto& [name, child] : module.children()) RefreshAttributes(*child);
}

void RefreshAttributes(PythonGraph& graph) {
  RefreshAttributes(py::cast(&graph, py::return_value_policy::reference), graph.named_parameters());
  for (const nn::Module* module : graph.adopted()) RefreshAttributes(*module);
}

OptimizerHandle AddOptimizer(PythonGraph& graph, const optim::Optimizer& optim,
                             const std::optional<optim::LRSchedule>& lr_sch) {
  optim::Optimizer optimizer = optim;
  if (lr_sch) optimizer.mutable_step_options().lr_schedule = *lr_sch;
  OptimizerHandle handle(graph.add_optimizer(optimizer, kNoLine), graph);
  RaiseTraceError();
  Check(graph.TakeStatus());
  // It keeps them in a type of its own.
  if (optimizer.step_options().weights != optim::Weights::kDeclared) RefreshAttributes(graph);
  return handle;
}

PlateauHandle AddPlateau(PythonGraph& graph, OptimizerHandle& optimizer,
                         const optim::ReduceLROnPlateau& plateau) {
  PlateauHandle handle(graph.add_plateau(optimizer.get(), plateau, kNoLine), graph);
  RaiseTraceError();
  Check(graph.TakeStatus());
  return handle;
}

template <nn::ScalerHandle (nn::Graph::*kAdd)(const amp::GradScaler&, nn::Loc)>
ScalerHandle AddScaler(PythonGraph& graph, const amp::GradScaler& scaler) {
  ScalerHandle handle((graph.*kAdd)(scaler, kNoLine), graph);
  RaiseTraceError();
  Check(graph.TakeStatus());
  return handle;
}

template <nn::ScalerHandle (nn::Graph::*kAdd)(const nn::ScalerHandle&, nn::Loc)>
ScalerHandle ShareScaler(PythonGraph& graph, ScalerHandle& scaler) {
  const GraphLock lock = scaler.Lock();
  ScalerHandle handle((graph.*kAdd)(scaler.get(), kNoLine), graph);
  RaiseTraceError();
  Check(graph.TakeStatus());
  return handle;
}

auto LoadInto(PythonGraph& graph) {
  return [&graph](const nn::StateDict& state, const runtime::LoadOptions& options) {
    return graph.load_state_dict(state, options);
  };
}

void BindState(py::class_<PythonGraph>& graph) {
  graph
      .def("state_dict",
           [](PythonGraph& g) {
             return FromStateDict(Unwrap(WithoutInterpreterLock([&] { return g.state_dict(); })));
           })
      .def(
          "load_state_dict",
          [](PythonGraph& g, const py::dict& state, bool strict, const py::object& rename,
             bool convert) {
            return LoadState(ToStateDict(state), {strict, convert}, rename, "", LoadInto(g));
          },
          py::arg("state"), py::arg("strict") = true, py::arg("rename") = py::none(),
          py::arg("convert") = false)
      .def(
          "save_checkpoint",
          [](PythonGraph& g, const std::string& path, const Metadata& metadata) {
            CheckFile(WithoutInterpreterLock([&] { return g.save_checkpoint(path, metadata); }));
          },
          py::arg("path"), py::arg("metadata") = Metadata())
      .def(
          "load_checkpoint",
          [](PythonGraph& g, const std::string& path, bool strict, const py::object& rename,
             bool convert) {
            const absl::StatusOr<runtime::Checkpoint> checkpoint =
                WithoutInterpreterLock([&] { return runtime::ReadCheckpoint(path); });
            CheckFile(checkpoint.status());
            const nn::LoadReport report =
                LoadState(checkpoint->tensors, {strict, convert}, rename, path + ": ", LoadInto(g));
            return py::make_tuple(report, FromMetadata(checkpoint->metadata));
          },
          py::arg("path"), py::arg("strict") = true, py::arg("rename") = py::none(),
          py::arg("convert") = false)
      .def("initialize",
           [](PythonGraph& g) { Check(WithoutInterpreterLock([&] { return g.initialize(); })); })
      .def("flush",
           [](PythonGraph& g) { Check(WithoutInterpreterLock([&] { return g.flush(); })); })
      .def_property_readonly("accumulated_micro_batches",
                             Locked(&nn::Graph::accumulated_micro_batches))
      .def("synchronize",
           [](PythonGraph& g) { Check(WithoutInterpreterLock([&] { return g.synchronize(); })); })
      .def("parameters", [](const PythonGraph& g) { return Distinct(g.named_parameters()); })
      .def("named_parameters", &PythonGraph::named_parameters)
      .def("grad_scaler", [](PythonGraph& g) { return ScalerHandle(g.grad_scaler(), g); })
      .def("last_step_skipped", Locked(&nn::Graph::last_step_skipped))
      .def_property_readonly("grad_norm", Locked(&nn::Graph::grad_norm))
      .def(
          "split_parameters",
          [](const PythonGraph& g, const py::object& by) {
            return Split(g.named_parameters(), by);
          },
          py::arg("by"))
      .def("first_nonfinite_param",
           [](const PythonGraph& g) {
             const GraphLock lock(g);
             return Text(g.first_nonfinite_param());
           })
      .def("first_nonfinite_node",
           [](PythonGraph& g, const py::args& inputs) {
             std::optional<nn::NonFiniteNode> found;
             g.WithInputs(inputs, [&](absl::Span<const Tensor> in) -> absl::Status {
               HT_ASSIGN_OR_RETURN(found, g.first_nonfinite_node(in));
               return absl::OkStatus();
             });
             return found;
           })
      .def_property_readonly("run_count", Locked(&nn::Graph::run_count));
}

void BindTexts(py::class_<PythonGraph>& graph) {
  const auto text = [&graph](const char* name, std::string (nn::Graph::*get)() const) {
    graph.def(name, [get](const PythonGraph& g) {
      const GraphLock lock(g);
      return Text((g.*get)());
    });
  };
  text("traced_text", &nn::Graph::traced_text);
  text("compiled_text", &nn::Graph::compiled_text);
  text("kernel_log", &nn::Graph::kernel_log);
  text("amp_summary", &nn::Graph::amp_summary);
  text("amp_table", &nn::Graph::amp_table);
  graph.def("notes", Locked(&nn::Graph::notes))
      .def("debug", Locked(&nn::Graph::debug), py::arg("level"))
      .def_property_readonly("name", &PythonGraph::name)
      .def_property_readonly("arena_bytes", Locked(&nn::Graph::arena_bytes));
}

}  // namespace

// `with nn.EmaScope(graph):`
class AveragesScope {
 public:
  explicit AveragesScope(py::object graph) : graph_(std::move(graph)) {}

  void Enter() {
    auto& graph = py::cast<PythonGraph&>(graph_);
    auto scope = WithoutInterpreterLock([&] { return std::make_unique<nn::EmaScope>(graph); });
    RaiseTraceError();
    Check(scope->status());
    scope_ = std::move(scope);
  }
  void Exit(const py::args& /*exception*/) {
    WithoutInterpreterLock([&] { scope_.reset(); });
  }

 private:
  py::object graph_;
  std::unique_ptr<nn::EmaScope> scope_;  // gone before the graph
};

void BindConfig(py::module_& m) {
  py::class_<nn::GraphConfig>(m, "GraphConfig", py::is_final())
      .def(
          "enable_amp",
          [](nn::GraphConfig& config, bool mode, const py::object& dtype,
             const std::optional<amp::Policy>& policy) {
            amp::Policy chosen = policy.value_or(amp::Policy());
            if (!dtype.is_none()) chosen.dtype = ToDType(dtype);
            config.enable_amp(mode, std::move(chosen));
          },
          py::arg("mode") = true, py::kw_only(), py::arg("dtype") = py::none(),
          py::arg("policy") = py::none())
      .def_property_readonly("amp_enabled", &nn::GraphConfig::amp_enabled)
      .def_property_readonly("amp_policy", &nn::GraphConfig::amp_policy,
                             py::return_value_policy::copy)
      .def("set_gradient_accumulation_steps", &nn::GraphConfig::set_gradient_accumulation_steps,
           py::arg("count"))
      .def_property_readonly("gradient_accumulation_steps",
                             &nn::GraphConfig::gradient_accumulation_steps)
      .def("accumulate_calls", &nn::GraphConfig::accumulate_calls, py::arg("count"))
      .def_property_readonly("accumulated_calls", &nn::GraphConfig::accumulated_calls)
      .def(
          "data_parallel",
          [](nn::GraphConfig& config, int64_t bucket_bytes, const std::string& reduction,
             const py::object& wire_dtype, bool sync_batch_norm, bool shard_optimizer) {
            using Reduction = nn::DataParallel::Reduction;
            if (reduction != "mean" && reduction != "sum") {
              Check(InvalidArgument("data_parallel: reduction is \"", reduction,
                                    "\"; expected mean or sum"));
            }
            nn::DataParallel options;
            options.bucket_bytes = bucket_bytes;
            options.reduction = reduction == "sum" ? Reduction::kSum : Reduction::kMean;
            if (!wire_dtype.is_none()) options.wire_dtype = ToDType(wire_dtype);
            options.sync_batch_norm = sync_batch_norm;
            options.shard_optimizer = shard_optimizer;
            config.data_parallel(options);
          },
          py::kw_only(), py::arg("bucket_bytes") = nn::DataParallel().bucket_bytes,
          py::arg("reduction") = "mean", py::arg("wire_dtype") = py::none(),
          py::arg("sync_batch_norm") = false, py::arg("shard_optimizer") = false)
      .def("allow_fuse_model_update_ops", &nn::GraphConfig::allow_fuse_model_update_ops,
           py::arg("mode") = true)
      .def("allow_fuse_cast_scale", &nn::GraphConfig::allow_fuse_cast_scale, py::arg("mode") = true)
      .def_readwrite("amp_low_outputs", &nn::GraphConfig::amp_low_outputs)
      .def_readwrite("allow_tf32", &nn::GraphConfig::allow_tf32)
      .def_readwrite("deterministic", &nn::GraphConfig::deterministic)
      .def_readwrite("allow_low_weight_gradients", &nn::GraphConfig::allow_low_weight_gradients)
      .def_readwrite("allow_fusion", &nn::GraphConfig::allow_fusion)
      .def_readwrite("pack_weights", &nn::GraphConfig::pack_weights)
      .def_readwrite("update_buffers_on_skip", &nn::GraphConfig::update_buffers_on_skip)
      .def_readwrite("track_grad_norm", &nn::GraphConfig::track_grad_norm)
      .def_readwrite("clip_grad_norm", &nn::GraphConfig::clip_grad_norm)
      .def_readwrite("memory_budget", &nn::GraphConfig::memory_budget)
      .def_readwrite("recompute_cheap_values", &nn::GraphConfig::recompute_cheap_values)
      .def_readwrite("seed", &nn::GraphConfig::seed)
      .def_readwrite("cache_size", &nn::GraphConfig::cache_size)
      .def_readwrite("dump_dir", &nn::GraphConfig::dump_dir);
}

void BindGraph(py::module_& m) {
  py::class_<PythonGraph> graph(m, "Graph", Collectable(),
                                "A step: subclass it and describe the step in build()");
  graph
      .def(py::init([](const std::string& name) {
             return std::make_unique<PythonGraph>(ir::IsValidName(name) ? name : "graph");
           }),
           py::arg("name") = "graph")
      .def("__setattr__", &SetGraphAttribute)
      .def("__call__", &PythonGraph::Call)
      .def("compile", &PythonGraph::Compile)
      .def("export_onnx", &PythonGraph::ExportOnnx)
      .def("inference_model", &PythonGraph::InferenceModel)
      .def("build",
           [](const PythonGraph& g, const py::args&) {
             Raise(Unimplemented("graph @", g.name(), " has no build(); expected a subclass of ",
                                 "nn.Graph that defines it"));
           })
      .def_property_readonly(
          "config", [](PythonGraph& g) -> nn::GraphConfig& { return g.config; },
          py::return_value_policy::reference_internal)
      .def(
          "add_module",
          [](const py::object& self, const std::string& name, const py::object& module) {
            if (!py::isinstance<nn::Module>(module)) RaiseTypeError("add_module: not a Module");
            Adopt(self, name, module);
          },
          py::arg("name"), py::arg("module"))
      .def("add_optimizer", &AddOptimizer, py::arg("optim"), py::arg("lr_sch") = py::none())
      .def("add_plateau", &AddPlateau, py::arg("optimizer"), py::arg("plateau"))
      .def("set_grad_scaler", &AddScaler<&PythonGraph::set_grad_scaler>, py::arg("scaler"))
      .def("add_scaler", &AddScaler<&PythonGraph::add_scaler>, py::arg("scaler"))
      .def("set_grad_scaler", &ShareScaler<&PythonGraph::set_grad_scaler>, py::arg("scaler"))
      .def("add_scaler", &ShareScaler<&PythonGraph::add_scaler>, py::arg("scaler"))
      .def(
          "to",
          [](PythonGraph& g, const std::string& device) {
            const GraphLock lock(g);
            g.to(ToDevice(device));
            RaiseTraceError();
          },
          py::arg("device"))
      .def_property_readonly("device",
                             [](const PythonGraph& g) {
                               const GraphLock lock(g);
                               return g.device().ToString();
                             })
      .def(
          "train",
          [](PythonGraph& g, bool mode) {
            const GraphLock lock(g);
            mode ? g.train() : g.eval();
            RaiseTraceError();
          },
          py::arg("mode") = true)
      .def("eval",
           [](PythonGraph& g) {
             const GraphLock lock(g);
             g.eval();
             RaiseTraceError();
           })
      .def_property_readonly("is_training", Locked(&nn::Graph::is_training));
  py::class_<AveragesScope>(m, "EmaScope", py::is_final(),
                            "While it is open, parameters have the values of their averages")
      .def(py::init([](const py::object& g) {
             if (!py::isinstance<PythonGraph>(g)) RaiseTypeError("EmaScope: not a Graph");
             return std::make_unique<AveragesScope>(g);
           }),
           py::arg("graph"))
      .def("__enter__", [](AveragesScope& scope) { scope.Enter(); })
      .def("__exit__", &AveragesScope::Exit);
  BindState(graph);
  BindTexts(graph);
}

}  // namespace halftone::python
