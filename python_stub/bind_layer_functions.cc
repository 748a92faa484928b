#include <pybind11/stl.h>

#include <optional>

#include "halftone/graph/nn/functional.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/tracing.h"

namespace halftone::python {
namespace {

using nn::Value;

void BindActivations(py::module_& m) {
  m.def("gelu", Traced(+[](const Value& x, const std::string& approximate) {
          return nn::gelu(x, approximate);
        }),
        py::arg("x"), py::arg("approximate") = "none");
  m.def("softmax", Traced(+[](const Value& x, int64_t axis) { return nn::softmax(x, axis); }),
        py::arg("x"), py::arg("axis"));
  m.def("log_softmax",
        Traced(+[](const Value& x, int64_t axis) { return nn::log_softmax(x, axis); }),
        py::arg("x"), py::arg("axis"));
  m.def("dropout", Traced(+[](const Value& x, double p) { return nn::dropout(x, p); }),
        py::arg("x"), py::arg("p") = 0.5);
}

void BindProducts(py::module_& m) {
  m.def("matmul", Traced(+[](const Value& a, const Value& b) { return nn::matmul(a, b); }),
        py::arg("a"), py::arg("b"));
  m.def("linear",
        Traced(+[](const Value& x, const Value& weight, const std::optional<Value>& bias) {
          return bias ? nn::linear(x, weight, *bias) : nn::linear(x, weight);
        }),
        py::arg("x"), py::arg("weight"), py::arg("bias") = py::none());
  m.def("conv2d",
        Traced(+[](const Value& x, const Value& weight, const std::optional<Value>& bias,
                   const py::object& stride, const py::object& padding, const py::object& dilation,
                   int64_t groups) {
          const nn::Conv2dOptions options{ToSize2d(stride, "stride"), ToSize2d(padding, "padding"),
                                          ToSize2d(dilation, "dilation"), groups};
          return bias ? nn::conv2d(x, weight, *bias, options) : nn::conv2d(x, weight, options);
        }),
        py::arg("x"), py::arg("weight"), py::arg("bias") = py::none(), py::arg("stride") = 1,
        py::arg("padding") = 0, py::arg("dilation") = 1, py::arg("groups") = 1);
  m.def("max_pool2d",
        Traced(+[](const Value& x, const py::object& kernel, const py::object& stride,
                   const py::object& padding, const py::object& dilation, bool ceil_mode) {
          return nn::max_pool2d(x, ToSize2d(kernel, "kernel"),
                                {ToSize2d(stride, "stride"), ToSize2d(padding, "padding"),
                                 ToSize2d(dilation, "dilation"), ceil_mode});
        }),
        py::arg("x"), py::arg("kernel"), py::arg("stride") = 0, py::arg("padding") = 0,
        py::arg("dilation") = 1, py::arg("ceil_mode") = false);
  m.def("avg_pool2d",
        Traced(+[](const Value& x, const py::object& kernel, const py::object& stride,
                   const py::object& padding, bool ceil_mode, bool count_include_pad) {
          return nn::avg_pool2d(x, ToSize2d(kernel, "kernel"),
                                {ToSize2d(stride, "stride"), ToSize2d(padding, "padding"),
                                 ceil_mode, count_include_pad});
        }),
        py::arg("x"), py::arg("kernel"), py::arg("stride") = 0, py::arg("padding") = 0,
        py::arg("ceil_mode") = false, py::arg("count_include_pad") = true);
}

void BindLosses(py::module_& m) {
  m.def(
      "cross_entropy",
      Traced(+[](const Value& logits, const Value& target, double label_smoothing,
                 int64_t ignore_index, const std::string& reduction, int64_t axis) {
        return nn::cross_entropy(logits, target, {label_smoothing, ignore_index, reduction, axis});
      }),
      py::arg("logits"), py::arg("target"), py::arg("label_smoothing") = 0.0,
      py::arg("ignore_index") = -100, py::arg("reduction") = "mean", py::arg("axis") = 1);
  m.def("mse_loss", Traced(+[](const Value& a, const Value& b, const std::string& reduction) {
          return nn::mse_loss(a, b, reduction);
        }),
        py::arg("a"), py::arg("b"), py::arg("reduction") = "mean");
  m.def("l1_loss", Traced(+[](const Value& a, const Value& b, const std::string& reduction) {
          return nn::l1_loss(a, b, reduction);
        }),
        py::arg("a"), py::arg("b"), py::arg("reduction") = "mean");
  m.def("detach", Traced(+[](const Value& x) { return nn::detach(x); }), py::arg("x"));
  m.def("gradients", Traced(+[](const Value& loss, const std::vector<Value>& wrt) {
          return nn::gradients(loss, wrt).vector();
        }),
        py::arg("loss"), py::arg("wrt"));
}

void BindTables(py::module_& m) {
  m.def("gather", Traced(+[](const Value& x, const Value& indices, int64_t axis) {
          return nn::gather(x, indices, axis);
        }),
        py::arg("x"), py::arg("indices"), py::arg("axis") = 0);
  m.def("embedding", Traced(+[](const Value& indices, const Value& table, int64_t padding_idx) {
          return nn::embedding(indices, table, padding_idx);
        }),
        py::arg("indices"), py::arg("table"), py::arg("padding_idx") = -1);
  m.def("layer_norm",
        Traced(+[](const Value& x, const Value& gamma, const Value& beta, double eps) {
          return nn::layer_norm(x, gamma, beta, eps);
        }),
        py::arg("x"), py::arg("gamma"), py::arg("beta"), py::arg("eps") = 1e-5);
}

}  // namespace

nn::Size2d ToSize2d(py::handle object, const char* what) {
  if (py::isinstance<py::int_>(object)) return {py::cast<int64_t>(object)};
  if (py::isinstance<py::sequence>(object) && py::len(object) == 2) {
    const auto pair = py::reinterpret_borrow<py::sequence>(object);
    if (py::isinstance<py::int_>(pair[0]) && py::isinstance<py::int_>(pair[1])) {
      return {py::cast<int64_t>(pair[0]), py::cast<int64_t>(pair[1])};
    }
  }
  RaiseTypeError(Concat(what, " is ", py::cast<std::string>(py::repr(object)),
                        "; expected an int or a pair of ints (height, width)"));
}

void BindLayerFunctions(py::module_& m) {
  BindActivations(m);
  BindProducts(m);
  BindLosses(m);
  BindTables(m);
}

}  // namespace halftone::python
