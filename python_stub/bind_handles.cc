#include <pybind11/stl.h>

#include "halftone/graph/nn/graph.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/weak_handle.h"

namespace halftone::python {
namespace {

// A str, not bytes: names of files need not be UTF-8.
template <typename T>
auto TextOf(std::string T::*field) {
  return [field](const T& object) { return Text(object.*field); };
}

void BindOptimizerHandles(py::module_& m) {
  py::class_<GroupHandle>(m, "GroupHandle", py::is_final())
      .def_property("lr", Getter(&nn::GroupHandle::lr), Setter(&nn::GroupHandle::set_lr))
      .def_property_readonly("parameters", Getter(&nn::GroupHandle::parameters));
  using O = nn::OptimizerHandle;
  py::class_<OptimizerHandle>(m, "OptimizerHandle", py::is_final())
      .def_property_readonly("name", &OptimizerHandle::name)
      .def_property("lr", Getter(&O::lr), Setter(&O::set_lr))
      .def_property_readonly("groups",
                             [](OptimizerHandle& h) {
                               std::vector<GroupHandle> groups;
                               for (size_t i = 0; i < h.get().num_groups(); ++i) {
                                 groups.push_back(h.With(h.get().group(i)));
                               }
                               return groups;
                             })
      .def_property_readonly("applied_steps", Getter(&O::applied_steps))
      .def_property_readonly("grad_norm", Getter(&O::grad_norm))
      .def_property_readonly("last_step_skipped", Getter(&O::last_step_skipped));
  using P = nn::PlateauHandle;
  py::class_<PlateauHandle>(m, "PlateauHandle", py::is_final())
      .def(
          "step",
          [](PlateauHandle& h, double metric) {
            const GraphLock lock = h.Lock();
            return Unwrap(h.get().step(metric));
          },
          py::arg("metric"))
      .def_property_readonly("best", Getter(&P::best))
      .def_property_readonly("num_bad_epochs", Getter(&P::num_bad_epochs))
      .def_property_readonly("cooldown_counter", Getter(&P::cooldown_counter));
}

void BindScalerHandle(py::module_& m) {
  using S = nn::ScalerHandle;
  py::class_<ScalerHandle>(m, "ScalerHandle", py::is_final())
      .def_property_readonly("name", &ScalerHandle::name)
      .def_property("scale", Getter(&S::scale), Setter(&S::set_scale))
      .def_property("growth_factor", Getter(&S::growth_factor), Setter(&S::set_growth_factor))
      .def_property("backoff_factor", Getter(&S::backoff_factor), Setter(&S::set_backoff_factor))
      .def_property("growth_interval", Getter(&S::growth_interval), Setter(&S::set_growth_interval))
      .def_property_readonly("growth_tracker", Getter(&S::growth_tracker))
      .def_property_readonly("total_steps", Getter(&S::total_steps))
      .def_property_readonly("skipped_count", Getter(&S::skipped_count))
      .def_property_readonly("consecutive_skips", Getter(&S::consecutive_skips))
      .def_property_readonly("scale_history", Getter(&S::scale_history))
      .def("measure_gradients",
           [](ScalerHandle& h, const py::args& inputs) {
             nn::GradientReport report;
             h.owner().WithInputs(inputs, [&](absl::Span<const Tensor> in) -> absl::Status {
               HT_ASSIGN_OR_RETURN(report, h.get().measure_gradients(in));
               return absl::OkStatus();
             });
             return report;
           })
      .def("state_dict",
           [](ScalerHandle& h) {
             const GraphLock lock = h.Lock();
             return Unwrap(h.get().state_dict());
           })
      .def(
          "load_state_dict",
          [](ScalerHandle& h, const amp::StateDict& state) {
            const GraphLock lock = h.Lock();
            Check(h.get().load_state_dict(state));
          },
          py::arg("state"));
}

void BindScaleStatistics(py::module_& m) {
  using Change = amp::ScaleChange;
  py::class_<Change>(m, "ScaleChange", py::is_final())
      .def_readonly("step", &Change::step)
      .def_readonly("before", &Change::before)
      .def_readonly("after", &Change::after)
      .def_property_readonly("cause", [](const Change& change) { return Name(change.cause); })
      .def("__repr__", [](const Change& c) {
        return Text(Concat("ScaleChange(step=", c.step, ", before=", c.before, ", after=", c.after,
                           ", cause='", Name(c.cause), "')"));
      });
  using Fit = nn::GradientFit;
  py::class_<Fit>(m, "GradientFit", py::is_final())
      .def_property_readonly("parameter", TextOf(&Fit::parameter))
      .def_readonly("largest", &Fit::largest)
      .def_readonly("elements", &Fit::elements)
      .def_readonly("zeros", &Fit::zeros)
      .def_readonly("non_finite", &Fit::non_finite)
      .def_readonly("vanishing_share", &Fit::vanishing_share)
      .def_readonly("subnormal_share", &Fit::subnormal_share);
  py::class_<nn::GradientReport>(m, "GradientReport", py::is_final())
      .def_readonly("scale", &nn::GradientReport::scale)
      .def_readonly("suggested_scale", &nn::GradientReport::suggested_scale)
      .def_readonly("parameters", &nn::GradientReport::parameters);
}

const char* NameOf(nn::NonFiniteNode::Kind kind) {
  using Kind = nn::NonFiniteNode::Kind;
  switch (kind) {
    case Kind::kComputed:
      return "computed";
    case Kind::kInput:
      return "input";
    case Kind::kVariable:
      return "variable";
    case Kind::kConstant:
      return "constant";
  }
  return "";
}

void BindNonFiniteNode(py::module_& m) {
  py::class_<amp::Range>(m, "Range", py::is_final())
      .def_readonly("largest", &amp::Range::largest)
      .def_readonly("smallest", &amp::Range::smallest)
      .def_readonly("elements", &amp::Range::elements)
      .def_readonly("zeros", &amp::Range::zeros)
      .def_readonly("non_finite", &amp::Range::non_finite)
      .def_readonly("nans", &amp::Range::nans);
  using Found = nn::NonFiniteNode;
  py::class_<Found::Operand>(m, "NonFiniteOperand", py::is_final())
      .def_property_readonly("value", TextOf(&Found::Operand::value))
      .def_property_readonly("type", TextOf(&Found::Operand::type))
      .def_readonly("range", &Found::Operand::range);
  py::class_<Found>(m, "NonFiniteNode", py::is_final())
      .def_property_readonly("kind", [](const Found& found) { return NameOf(found.kind); })
      .def_property_readonly("node", TextOf(&Found::node))
      .def_property_readonly("op", TextOf(&Found::op))
      .def_property_readonly("module", TextOf(&Found::module))
      .def_property_readonly("location", TextOf(&Found::location))
      .def_property_readonly("gradient_of", TextOf(&Found::gradient_of))
      .def_readonly("output", &Found::output)
      .def_property_readonly("type", TextOf(&Found::type))
      .def_property_readonly("why", TextOf(&Found::why))
      .def_readonly("range", &Found::range)
      .def_readonly("operands", &Found::operands)
      .def_readonly("scales", &Found::scales)
      .def("__str__", [](const Found& found) { return Text(runtime::ToString(found)); });
}

void BindLoadReport(py::module_& m) {
  py::class_<nn::LoadMismatch>(m, "LoadMismatch", py::is_final())
      .def_readonly("name", &nn::LoadMismatch::name)
      .def_readonly("got", &nn::LoadMismatch::got)
      .def_readonly("expected", &nn::LoadMismatch::expected);
  py::class_<nn::LoadReport>(m, "LoadReport", py::is_final())
      .def_readonly("missing", &nn::LoadReport::missing)
      .def_readonly("unexpected", &nn::LoadReport::unexpected)
      .def_readonly("mismatched", &nn::LoadReport::mismatched)
      .def_readonly("unused_renames", &nn::LoadReport::unused_renames)
      .def("__repr__", [](const nn::LoadReport& report) {
        return Text("LoadReport(" + report.ToString() + ")");
      });
}

}  // namespace

void BindHandles(py::module_& m) {
  BindScaleStatistics(m);
  BindNonFiniteNode(m);
  BindOptimizerHandles(m);
  BindScalerHandle(m);
  BindLoadReport(m);
}

}  // namespace halftone::python
