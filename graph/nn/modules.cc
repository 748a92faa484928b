#include <cmath>

#include "halftone/graph/nn/activations.h"
#include "halftone/graph/nn/dropout.h"
#include "halftone/graph/nn/embedding.h"
#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/linear.h"
#include "halftone/graph/nn/module_util.h"
#include "halftone/graph/nn/op.h"
#include "halftone/graph/nn/resize.h"
#include "halftone/graph/nn/sequential.h"

namespace halftone::nn {
namespace internal {

ir::Initializer UniformOfFanIn(int64_t fan_in) {
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  return {ir::Initializer::Kind::kUniform, -bound, bound};
}

absl::Status CheckPositive(const char* module, std::initializer_list<NamedInt> values) {
  for (const NamedInt& value : values) {
    if (value.value >= 1 && value.value <= kMaxElements) continue;
    return InvalidArgument(module, ": ", value.name, " is ", value.value, "; expected at ",
                           value.value < 1 ? "least 1" : Concat("most ", kMaxElements));
  }
  return absl::OkStatus();
}

}  // namespace internal

Linear::Linear(int64_t in_features, int64_t out_features, const LinearOptions& options)
    : in_features_(in_features), out_features_(out_features) {
  Fail(internal::CheckPositive("Linear",
                               {{"in_features", in_features}, {"out_features", out_features}}));
  const absl::StatusOr<Shape> shape = Shape::Make({out_features, in_features});
  if (!status().ok() || !shape.ok()) {
    Fail(shape.status());
    return;
  }
  weight = Parameter(*shape, internal::UniformOfFanIn(in_features));
  register_parameter("weight", weight);
  if (options.bias) bias = Parameter(Shape{out_features}, internal::UniformOfFanIn(in_features));
  register_parameter("bias", bias);
}

Value Linear::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  return linear(x, Value(weight, loc), {bias, loc}, loc);
}

std::string Linear::description() const {
  return Concat("Linear(", in_features_, ", ", out_features_, ")");
}

std::string Upsample::description() const { return Concat("Upsample(", options_.mode, ")"); }

std::string PixelShuffle::description() const { return Concat("PixelShuffle(", factor_, ")"); }

std::string PixelUnshuffle::description() const { return Concat("PixelUnshuffle(", factor_, ")"); }

std::string Dropout::description() const { return Concat("Dropout(", p_, ")"); }

std::string internal::DescriptionOf(const char* layer,
                                    std::initializer_list<std::pair<const char*, double>> numbers) {
  std::string text;
  for (const auto& [name, value] : numbers) {
    text += Concat(text.empty() ? "" : ", ", name, "=", value);
  }
  return Concat(layer, "(", text, ")");
}

PReLU::PReLU(const PReLUOptions& options) : num_parameters_(options.num_parameters) {
  Fail(internal::CheckPositive("PReLU", {{"num_parameters", options.num_parameters}}));
  if (!status().ok()) return;
  weight = Parameter(Shape{num_parameters_}, {ir::Initializer::Kind::kConstant, options.init, 0});
  register_parameter("weight", weight);
}

Value PReLU::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  return prelu(x, Value(weight, loc), loc);
}

std::string PReLU::description() const { return Concat("PReLU(", num_parameters_, ")"); }

Embedding::Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options)
    : num_embeddings_(num_embeddings), embedding_dim_(embedding_dim), options_(options) {
  Fail(internal::CheckPositive(
      "Embedding", {{"num_embeddings", num_embeddings}, {"embedding_dim", embedding_dim}}));
  const absl::StatusOr<Shape> shape = Shape::Make({num_embeddings, embedding_dim});
  if (!status().ok() || !shape.ok()) {
    Fail(shape.status());
    return;
  }
  const int64_t padding = options.padding_idx.value_or(0);
  if (padding < 0 || padding >= num_embeddings) {
    Fail(OutOfRange("Embedding: padding_idx is ", padding, "; expected 0..", num_embeddings - 1));
    return;
  }
  weight = Parameter(*shape, {ir::Initializer::Kind::kNormal, 0, 1});
  register_parameter("weight", weight);
}

Value Embedding::forward(const Value& x) {
  const Loc loc = internal::CallSite();
  return embedding(x, Value(weight, loc), options_.padding_idx.value_or(-1), options_.sparse, loc);
}

std::string Embedding::description() const {
  return Concat("Embedding(", num_embeddings_, ", ", embedding_dim_, ")");
}

Value Sequential::forward(const Value& x) {
  Value y = x;
  for (Module& module : *this) y = module(y, internal::CallSite());
  return y;
}

std::string Sequential::description() const { return Concat("Sequential(", size(), ")"); }

}  // namespace halftone::nn
