#include <pybind11/stl.h>

#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "halftone/graph/nn/parameter.h"
#include "halftone/optim/grad_scaler.h"
#include "halftone/optim/optimizer.h"
#include "halftone/optim/reduce_on_plateau.h"
#include "halftone/passes/amp/policy.h"
#include "halftone/python_stub/arrays.h"
#include "halftone/python_stub/bind.h"

namespace halftone::python {
namespace {

using Parameters = std::vector<nn::Parameter>;

optim::ParameterList ToList(const Parameters& parameters) {
  optim::ParameterList list;
  for (const nn::Parameter& parameter : parameters) list.push_back(parameter.storage());
  return list;
}

// The value that a word stands for.
template <typename T>
T OneOf(const char* argument, const std::string& word,
        const std::vector<std::pair<std::string, T>>& words) {
  std::string expected;
  for (const auto& [known, value] : words) {
    if (known == word) return value;
    expected += Concat(expected.empty() ? "" : " or ", known);
  }
  Raise(InvalidArgument(argument, " is \"", word, "\"; expected ", expected));
}

optim::SkipPolicy ToSkip(const std::string& skip) {
  return OneOf<optim::SkipPolicy>(
      "skip", skip, {{"own", optim::SkipPolicy::kOwn}, {"any", optim::SkipPolicy::kAny}});
}

template <typename O>
O Valid(O optimizer) {
  Check(optimizer.Validate());
  return optimizer;
}

void BindSchedules(py::module_& m) {
  py::class_<optim::LRSchedule>(m, "LRSchedule", py::is_final(),
                                "Maps the base learning rate and applied steps to the rate")
      .def("at", &optim::LRSchedule::At, py::arg("base_lr"), py::arg("applied_steps"))
      .def(
          "__mul__", [](const optim::LRSchedule& a, const optim::LRSchedule& b) { return a * b; },
          py::is_operator())
      .def("__repr__", [](const optim::LRSchedule& s) {
        return s.constant() ? std::string("constant") : s.ToString();
      });
  m.def(
      "StepLR",
      [](int64_t step_size, double gamma) { return Valid(optim::StepLR(step_size, gamma)); },
      py::arg("step_size"), py::arg("gamma") = 0.1);
  m.def(
      "CosineLR",
      [](int64_t t_max, double eta_min) { return Valid(optim::CosineLR(t_max, eta_min)); },
      py::arg("t_max"), py::arg("eta_min") = 0.0);
  m.def(
      "CosineAnnealingWarmRestarts",
      [](int64_t t_0, int64_t t_mult, double eta_min) {
        return Valid(optim::CosineAnnealingWarmRestarts(t_0, t_mult, eta_min));
      },
      py::arg("T_0"), py::arg("T_mult") = 1, py::arg("eta_min") = 0.0);
  m.def(
      "PolynomialLR",
      [](int64_t total_iters, double power) {
        return Valid(optim::PolynomialLR(total_iters, power));
      },
      py::arg("total_iters") = 5, py::arg("power") = 1.0);
  const optim::OneCycleOptions one_cycle;
  m.def(
      "OneCycleLR",
      [](double max_lr, int64_t total_steps, double pct_start, const std::string& anneal_strategy,
         double div_factor, double final_div_factor, bool three_phase) {
        const bool linear =
            OneOf<bool>("anneal_strategy", anneal_strategy, {{"cos", false}, {"linear", true}});
        return Valid(optim::OneCycleLR(
            max_lr, total_steps, {pct_start, linear, div_factor, final_div_factor, three_phase}));
      },
      py::arg("max_lr"), py::arg("total_steps"), py::kw_only(),
      py::arg("pct_start") = one_cycle.pct_start, py::arg("anneal_strategy") = "cos",
      py::arg("div_factor") = one_cycle.div_factor,
      py::arg("final_div_factor") = one_cycle.final_div_factor,
      py::arg("three_phase") = one_cycle.three_phase);
  m.def(
      "LinearWarmup",
      [](int64_t steps, double start) { return Valid(optim::LinearWarmup(steps, start)); },
      py::arg("steps"), py::arg("start_factor") = optim::kDefaultWarmupStart);
}

void BindEma(py::module_& m) {
  const optim::Ema defaults;
  py::class_<optim::Ema>(m, "Ema", py::is_final(), "A moving average of every parameter")
      .def(py::init([](double decay, double min_decay, int64_t update_after_step, bool use_warmup,
                       double warmup_gamma, double warmup_power) {
             return Valid(optim::Ema{decay, min_decay, update_after_step, use_warmup, warmup_gamma,
                                     warmup_power});
           }),
           py::arg("decay") = defaults.decay, py::arg("min_decay") = defaults.min_decay,
           py::arg("update_after_step") = defaults.update_after_step,
           py::arg("use_warmup") = defaults.use_warmup,
           py::arg("warmup_gamma") = defaults.warmup_gamma,
           py::arg("warmup_power") = defaults.warmup_power)
      .def("decay_at", &optim::Ema::DecayAt, py::arg("update"))
      .def_readonly("decay", &optim::Ema::decay)
      .def_readonly("min_decay", &optim::Ema::min_decay)
      .def_readonly("update_after_step", &optim::Ema::update_after_step)
      .def_readonly("use_warmup", &optim::Ema::use_warmup)
      .def_readonly("warmup_gamma", &optim::Ema::warmup_gamma)
      .def_readonly("warmup_power", &optim::Ema::warmup_power);
}

void BindPlateau(py::module_& m) {
  using Mode = optim::PlateauMode;
  using Threshold = optim::PlateauThreshold;
  const optim::ReduceLROnPlateauOptions defaults;
  py::class_<optim::ReduceLROnPlateau>(m, "ReduceLROnPlateau", py::is_final(),
                                       "Reduces base rates once a metric gets no better")
      .def(py::init([](const std::string& mode, double factor, int64_t patience, double threshold,
                       const std::string& threshold_mode, int64_t cooldown, double min_lr,
                       double eps) {
             return Valid(optim::ReduceLROnPlateau(
                 {OneOf<Mode>("mode", mode, {{"min", Mode::kMin}, {"max", Mode::kMax}}), factor,
                  patience, threshold,
                  OneOf<Threshold>("threshold_mode", threshold_mode,
                                   {{"rel", Threshold::kRel}, {"abs", Threshold::kAbs}}),
                  cooldown, min_lr, eps}));
           }),
           py::arg("mode") = "min", py::arg("factor") = defaults.factor,
           py::arg("patience") = defaults.patience, py::arg("threshold") = defaults.threshold,
           py::arg("threshold_mode") = "rel", py::arg("cooldown") = defaults.cooldown,
           py::arg("min_lr") = defaults.min_lr, py::arg("eps") = defaults.eps);
}

// One of PyTorch's dictionaries: "params" and options of their own.
template <typename Group>
Group ToGroup(const py::dict& dict, size_t index) {
  Group group;
  std::set<std::string> known = {"params"};
  optim::ForEachField(group.options, [&](const auto& field) {
    known.insert(field.name);
    if (!dict.contains(field.name)) return;
    auto& option = group.options.*field.member;
    using Value = typename std::decay_t<decltype(option)>::value_type;
    try {
      option = py::cast<Value>(dict[field.name]);
    } catch (const py::cast_error&) {
      RaiseTypeError(
          Concat("group ", index, ": ", field.name, ": got ", TypeName(dict[field.name])));
    }
  });
  for (const auto& [key, value] : dict) {
    const std::string name = py::str(key);
    if (known.count(name) != 0) continue;
    std::string expected;
    for (const std::string& k : known) expected += (expected.empty() ? "" : ", ") + k;
    Raise(InvalidArgument("group ", index, ": unknown key \"", name, "\"; expected ", expected));
  }
  if (!dict.contains("params")) Raise(InvalidArgument("group ", index, ": params is missing"));
  try {
    group.parameters = ToList(py::cast<Parameters>(dict["params"]));
  } catch (const py::cast_error&) {
    RaiseTypeError(Concat("group ", index, ": params: got ", TypeName(dict["params"]),
                          "; expected a list of parameters"));
  }
  return group;
}

// `params`: parameters, or groups of them as dictionaries.
template <typename O>
O Make(const py::iterable& params, const typename O::Options& options) {
  std::vector<typename O::Group> groups;
  Parameters parameters;
  for (const py::handle item : params) {
    if (py::isinstance<py::dict>(item)) {
      groups.push_back(
          ToGroup<typename O::Group>(py::reinterpret_borrow<py::dict>(item), groups.size()));
    } else if (py::isinstance<nn::Parameter>(item)) {
      parameters.push_back(py::cast<nn::Parameter>(item));
    } else {
      RaiseTypeError(Concat("params: got ", TypeName(item),
                            "; expected parameters, or dicts with \"params\""));
    }
  }
  if (groups.empty()) return Valid(O(ToList(parameters), options));
  if (!parameters.empty()) RaiseTypeError("params: parameters beside groups; expected one of them");
  return Valid(O(groups, options));
}

// A class of Python: its own options by position too, those of every optimizer by keyword.
template <typename O, typename... T>
void BindOptimizer(py::module_& m,
                   const std::tuple<optim::Field<typename O::Options, T>...>& fields) {
  using Options = typename O::Options;
  const Options defaults;
  const auto make = [fields](const py::iterable& params, const T&... own,
                             const optim::LRSchedule& lr_schedule, double clip_norm,
                             double clip_value, const std::string& scaler, const std::string& skip,
                             bool skip_nonfinite, const std::optional<optim::Ema>& ema,
                             const std::string& weights) {
    Options options;
    std::apply([&](const auto&... field) { ((options.*field.member = own), ...); }, fields);
    options.lr_schedule = lr_schedule;
    options.clip_norm = clip_norm;
    options.clip_value = clip_value;
    options.scaler = scaler;
    options.skip = ToSkip(skip);
    options.skip_nonfinite = skip_nonfinite;
    options.ema = ema;
    options.weights = Unwrap(optim::ParseWeights(weights));
    return Make<O>(params, options);
  };
  std::apply(
      [&](const auto&... field) {
        py::class_<O, optim::Optimizer>(m, Options::kTitle, py::is_final(), Options::kDoc)
            .def(py::init(make), py::arg("params"),
                 (py::arg(field.name) = defaults.*field.member)..., py::kw_only(),
                 py::arg("lr_schedule") = optim::LRSchedule(), py::arg("clip_norm") = 0.0,
                 py::arg("clip_value") = 0.0, py::arg("scaler") = "", py::arg("skip") = "own",
                 py::arg("skip_nonfinite") = false, py::arg("ema") = py::none(),
                 py::arg("weights") = optim::Name(optim::Weights::kDeclared));
      },
      fields);
}

void BindScaler(py::module_& m) {
  const amp::GradScalerOptions defaults;
  py::class_<amp::GradScaler>(m, "GradScaler", py::is_final())
      .def(py::init([](double init_scale, double growth_factor, double backoff_factor,
                       int64_t growth_interval, bool enabled, bool dynamic, double min_scale,
                       double max_scale, int64_t hysteresis, int64_t max_consecutive_skips) {
             return Valid(amp::GradScaler({init_scale, growth_factor, backoff_factor,
                                           growth_interval, enabled, dynamic, min_scale, max_scale,
                                           hysteresis, max_consecutive_skips}));
           }),
           py::arg("init_scale") = defaults.init_scale,
           py::arg("growth_factor") = defaults.growth_factor,
           py::arg("backoff_factor") = defaults.backoff_factor,
           py::arg("growth_interval") = defaults.growth_interval,
           py::arg("enabled") = defaults.enabled, py::kw_only(),
           py::arg("dynamic") = defaults.dynamic, py::arg("min_scale") = defaults.min_scale,
           py::arg("max_scale") = defaults.max_scale, py::arg("hysteresis") = defaults.hysteresis,
           py::arg("max_consecutive_skips") = defaults.max_consecutive_skips)
      .def("is_enabled", &amp::GradScaler::is_enabled)
      .def("state_dict", &amp::GradScaler::state_dict)
      .def(
          "load_state_dict",
          [](amp::GradScaler& s, const amp::StateDict& state) { Check(s.load_state_dict(state)); },
          py::arg("state"));
}

}  // namespace

void BindOptimizers(py::module_& m) {
  BindSchedules(m);
  BindPlateau(m);
  BindEma(m);
  py::class_<optim::Optimizer>(m, "Optimizer")
      .def_property_readonly("rule", &optim::Optimizer::rule)
      .def_property_readonly("lr", [](const optim::Optimizer& o) { return o.lr(); });
  optim::ForEachOptions([&m](const auto& options) {
    BindOptimizer<optim::OptimizerWith<std::decay_t<decltype(options)>>>(m, OwnFields(options));
  });
}

void BindAmp(py::module_& m) {
  BindScaler(m);
  using Entries = std::vector<std::string>;
  py::class_<amp::Policy>(m, "Policy", py::is_final(), "What mixed precision shall do differently")
      .def(py::init([](const py::object& dtype, const Entries& allow, const Entries& infer,
                       const Entries& clear, const Entries& deny, bool low_outputs, bool trim,
                       const std::string& level) {
             amp::Policy policy{std::nullopt, allow, infer, clear, deny, low_outputs, trim};
             if (!dtype.is_none()) policy.dtype = ToDType(dtype);
             const std::optional<amp::Level> parsed = amp::ParseLevel(level);
             if (!parsed) {
               throw py::value_error("level is \"" + level +
                                     "\"; expected balanced, conservative, only_matmul or force");
             }
             policy.level = *parsed;
             return policy;
           }),
           py::arg("dtype") = py::none(), py::kw_only(), py::arg("allow") = Entries(),
           py::arg("infer") = Entries(), py::arg("clear") = Entries(), py::arg("deny") = Entries(),
           py::arg("low_outputs") = false, py::arg("trim") = true, py::arg("level") = "balanced")
      .def_static(
          "from_lists",
          [](const py::object& dtype, const Entries& target_dtype_ops, const Entries& fp32_ops,
             const std::vector<std::tuple<std::string, std::string, Entries>>& conditional,
             const Entries& excluded_names) {
            amp::OpLists lists{target_dtype_ops, fp32_ops, {}, excluded_names};
            for (const auto& [op, attribute, values] : conditional) {
              lists.conditional_fp32_ops.push_back({op, attribute, values});
            }
            std::optional<DType> low;
            if (!dtype.is_none()) low = ToDType(dtype);
            return Unwrap(amp::Policy::FromLists(lists, low));
          },
          py::arg("dtype") = py::none(), py::kw_only(), py::arg("target_dtype_ops") = Entries(),
          py::arg("fp32_ops") = Entries(),
          py::arg("conditional_fp32_ops") =
              std::vector<std::tuple<std::string, std::string, Entries>>(),
          py::arg("excluded_names") = Entries())
      .def(
          "write_file",
          [](const amp::Policy& policy, const std::string& path) {
            CheckFile(policy.WriteFile(path));
          },
          py::arg("path"))
      .def_property_readonly("level", [](const amp::Policy& p) { return amp::Name(p.level); })
      .def_static(
          "parse", [](const std::string& text) { return Unwrap(amp::Policy::Parse(text)); },
          py::arg("text"))
      .def_static(
          "read_file",
          [](const std::string& path) {
            absl::StatusOr<amp::Policy> policy = amp::Policy::ReadFile(path);
            CheckFile(policy.status());
            return *policy;
          },
          py::arg("path"))
      .def("__str__", &amp::Policy::ToString)
      .def(
          "__eq__", [](const amp::Policy& a, const amp::Policy& b) { return a == b; },
          py::is_operator());
}

}  // namespace halftone::python
