#include <pybind11/stl.h>

#include <memory>
#include <optional>
#include <utility>

#include "halftone/graph/nn/activations.h"
#include "halftone/graph/nn/conv.h"
#include "halftone/graph/nn/dropout.h"
#include "halftone/graph/nn/embedding.h"
#include "halftone/graph/nn/linear.h"
#include "halftone/graph/nn/norm.h"
#include "halftone/graph/nn/pooling.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/errors.h"

namespace halftone::python {
namespace {

// Mistakes of a constructor are raised by it.
template <typename M, typename... Args>
std::unique_ptr<M> Make(Args&&... args) {
  auto module = std::make_unique<M>(std::forward<Args>(args)...);
  Check(module->status());
  return module;
}

// An attribute that is None where the layer has no such parameter; assigning ties. What is read is
// a handle of its own: it stays with its tensor when the layer is given another.
template <typename M>
void Attribute(py::class_<M, nn::Module>& layer, const char* name, nn::Parameter M::*member) {
  layer.def_property(
      name,
      [member](const M& module) -> std::optional<nn::Parameter> {
        const nn::Parameter& parameter = module.*member;
        return parameter.defined() ? std::optional(OwnHandle(parameter)) : std::nullopt;
      },
      [member](M& module, const nn::Parameter& parameter) { module.*member = parameter; });
}

void BindWeighted(py::module_& m) {
  py::class_<nn::Linear, nn::Module> linear(m, "Linear", py::is_final());
  linear.def(py::init([](int64_t in_features, int64_t out_features, bool bias) {
               return Make<nn::Linear>(in_features, out_features, bias);
             }),
             py::arg("in_features"), py::arg("out_features"), py::arg("bias") = true);
  Attribute(linear, "weight", &nn::Linear::weight);
  Attribute(linear, "bias", &nn::Linear::bias);

  py::class_<nn::Conv2d, nn::Module> conv(m, "Conv2d", py::is_final());
  conv.def(py::init([](int64_t in_channels, int64_t out_channels, const py::object& kernel_size,
                       const py::object& stride, const py::object& padding,
                       const py::object& dilation, int64_t groups, bool bias) {
             const nn::Conv2dLayerOptions options{ToSize2d(stride, "stride"),
                                                  ToSize2d(padding, "padding"),
                                                  ToSize2d(dilation, "dilation"), groups, bias};
             return Make<nn::Conv2d>(in_channels, out_channels,
                                     ToSize2d(kernel_size, "kernel_size"), options);
           }),
           py::arg("in_channels"), py::arg("out_channels"), py::arg("kernel_size"),
           py::arg("stride") = 1, py::arg("padding") = 0, py::arg("dilation") = 1,
           py::arg("groups") = 1, py::arg("bias") = true);
  Attribute(conv, "weight", &nn::Conv2d::weight);
  Attribute(conv, "bias", &nn::Conv2d::bias);

  py::class_<nn::Embedding, nn::Module> embedding(m, "Embedding", py::is_final());
  embedding.def(py::init([](int64_t rows, int64_t dim, std::optional<int64_t> padding_idx) {
                  return Make<nn::Embedding>(rows, dim, nn::EmbeddingOptions{padding_idx});
                }),
                py::arg("num_embeddings"), py::arg("embedding_dim"),
                py::arg("padding_idx") = py::none());
  Attribute(embedding, "weight", &nn::Embedding::weight);
}

void BindNorms(py::module_& m) {
  py::class_<nn::BatchNorm2d, nn::Module> batch(m, "BatchNorm2d", py::is_final());
  batch.def(
      py::init([](int64_t num_features, double eps, double momentum, bool affine) {
        return Make<nn::BatchNorm2d>(num_features, nn::BatchNormOptions{eps, momentum, affine});
      }),
      py::arg("num_features"), py::arg("eps") = 1e-5, py::arg("momentum") = 0.1,
      py::arg("affine") = true);
  Attribute(batch, "weight", &nn::BatchNorm2d::weight);
  Attribute(batch, "bias", &nn::BatchNorm2d::bias);
  Attribute(batch, "running_mean", &nn::BatchNorm2d::running_mean);
  Attribute(batch, "running_var", &nn::BatchNorm2d::running_var);
  Attribute(batch, "num_batches_tracked", &nn::BatchNorm2d::num_batches_tracked);

  py::class_<nn::LayerNorm, nn::Module> layer(m, "LayerNorm", py::is_final());
  layer.def(py::init([](const std::vector<int64_t>& shape, double eps, bool affine) {
              return Make<nn::LayerNorm>(shape, nn::LayerNormOptions{eps, affine});
            }),
            py::arg("normalized_shape"), py::arg("eps") = 1e-5, py::arg("affine") = true);
  Attribute(layer, "weight", &nn::LayerNorm::weight);
  Attribute(layer, "bias", &nn::LayerNorm::bias);
}

template <typename M>
void BindPlain(py::module_& m, const char* name) {
  py::class_<M, nn::Module>(m, name, py::is_final()).def(py::init<>());
}

void BindUnweighted(py::module_& m) {
#define HT_ACTIVATION(op, Formula, Layer, ...) BindPlain<nn::Layer>(m, #Layer);
#include "halftone/graph/ops/support/elementwise.def"
  py::class_<nn::GELU, nn::Module>(m, "GELU", py::is_final())
      .def(py::init<std::string>(), py::arg("approximate") = "none");
  py::class_<nn::Flatten, nn::Module>(m, "Flatten", py::is_final())
      .def(py::init<int64_t, int64_t>(), py::arg("first") = 1, py::arg("last") = -1);
  py::class_<nn::Dropout, nn::Module>(m, "Dropout", py::is_final())
      .def(py::init<double>(), py::arg("p") = 0.5);
  py::class_<nn::MaxPool2d, nn::Module>(m, "MaxPool2d", py::is_final())
      .def(py::init([](const py::object& kernel, const py::object& stride,
                       const py::object& padding, const py::object& dilation, bool ceil_mode) {
             const nn::MaxPool2dOptions options{ToSize2d(stride, "stride"),
                                                ToSize2d(padding, "padding"),
                                                ToSize2d(dilation, "dilation"), ceil_mode};
             return Make<nn::MaxPool2d>(ToSize2d(kernel, "kernel_size"), options);
           }),
           py::arg("kernel_size"), py::arg("stride") = 0, py::arg("padding") = 0,
           py::arg("dilation") = 1, py::arg("ceil_mode") = false);
  py::class_<nn::AvgPool2d, nn::Module>(m, "AvgPool2d", py::is_final())
      .def(py::init([](const py::object& kernel, const py::object& stride,
                       const py::object& padding, bool ceil_mode, bool count_include_pad) {
             const nn::AvgPool2dOptions options{ToSize2d(stride, "stride"),
                                                ToSize2d(padding, "padding"), ceil_mode,
                                                count_include_pad};
             return Make<nn::AvgPool2d>(ToSize2d(kernel, "kernel_size"), options);
           }),
           py::arg("kernel_size"), py::arg("stride") = 0, py::arg("padding") = 0,
           py::arg("ceil_mode") = false, py::arg("count_include_pad") = true);
}

}  // namespace

void BindLayers(py::module_& m) {
  BindWeighted(m);
  BindNorms(m);
  BindUnweighted(m);
}

}  // namespace halftone::python
