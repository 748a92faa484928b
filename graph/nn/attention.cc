#include "halftone/graph/nn/attention.h"

#include <cmath>

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/module_util.h"
#include "halftone/graph/nn/trace.h"

namespace halftone::nn {
namespace {

constexpr const char* kAttention = "MultiheadAttention";

// PyTorch's xavier_uniform: +-sqrt(6 / (fan_in + fan_out)). Source: Glorot, Bengio: "Understanding
// the difficulty of training deep feedforward neural networks", 2010, equation 16.
ir::Initializer XavierUniform(int64_t fan_in, int64_t fan_out) {
  const double bound = std::sqrt(6 / static_cast<double>(fan_in + fan_out));
  return {ir::Initializer::Kind::kUniform, -bound, bound};
}

ir::Initializer AllZero() { return {ir::Initializer::Kind::kConstant, 0, 0}; }

// Rows `part` of three equal parts.
Value Third(const Value& x, int64_t part, int64_t axis, Loc loc) {
  const int64_t size = x.dim(axis, loc) / 3;
  return slice(x, axis, part * size, (part + 1) * size, 1, loc);
}

}  // namespace

MultiheadAttention::MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                                       const MultiheadAttentionOptions& options)
    : out_proj(embed_dim, embed_dim, {.bias = options.bias}),
      embed_dim_(embed_dim),
      num_heads_(num_heads),
      options_(options) {
  Fail(internal::CheckPositive(kAttention, {{"embed_dim", embed_dim}, {"num_heads", num_heads}}));
  if (!status().ok()) return;
  if (embed_dim % num_heads != 0) {
    Fail(InvalidArgument(kAttention, ": num_heads is ", num_heads, "; expected a divisor of ",
                         embed_dim, ", embed_dim"));
    return;
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    Fail(InvalidArgument(kAttention, ": dropout is ", options.dropout,
                         "; expected 0 <= dropout < 1"));
    return;
  }
  const absl::StatusOr<Shape> shape = Shape::Make({3 * embed_dim, embed_dim});
  if (!shape.ok()) {
    Fail(shape.status());
    return;
  }
  in_proj_weight = Parameter(*shape, XavierUniform(embed_dim, 3 * embed_dim));
  register_parameter("in_proj_weight", in_proj_weight);
  if (options.bias) {
    in_proj_bias = Parameter(Shape{3 * embed_dim}, AllZero());
    out_proj.bias = Parameter(Shape{embed_dim}, AllZero());
  }
  register_parameter("in_proj_bias", in_proj_bias);
  register_module("out_proj", out_proj);
}

// Without a batch the axes are [L,E]; else [L,N,E], or [N,L,E] with batch_first.
Value MultiheadAttention::Heads(const Value& x, Loc loc) const {
  std::vector<int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
  dims.back() = num_heads_;
  dims.push_back(embed_dim_ / num_heads_);
  const Value split = reshape(x, dims, loc);
  if (x.rank() == 2) return transpose(split, 0, 1, loc);
  return options_.batch_first ? transpose(split, 1, 2, loc) : permute(split, {1, 2, 0, 3}, loc);
}

Value MultiheadAttention::Joined(const Value& heads, Loc loc) const {
  const Value rows = heads.rank() == 3      ? transpose(heads, 0, 1, loc)
                     : options_.batch_first ? transpose(heads, 1, 2, loc)
                                            : permute(heads, {2, 0, 1, 3}, loc);
  std::vector<int64_t> dims(rows.shape().dims().begin(), rows.shape().dims().end());
  dims.pop_back();
  dims.back() = embed_dim_;
  return reshape(rows, dims, loc);
}

Value MultiheadAttention::Attend(const Value& q, const Value& k, const Value& v,
                                 const OptionalValue& mask, Loc loc) {
  const AttentionOptions options{.dropout_p = options_.dropout, .is_causal = options_.is_causal};
  const Value heads = Heads(q, loc);
  OptionalValue attn_mask = mask;
  if (mask.has_value()) {
    // One mask for each head of each sequence, as PyTorch has them: [N*H,L,S].
    const Value& given = mask.value();
    Value fitted = given;
    if (heads.rank() == 4 && given.rank() == 3 && given.dim(0) == heads.dim(0) * num_heads_) {
      fitted = reshape(given, {heads.dim(0), num_heads_, given.dim(1), given.dim(2)}, loc);
    }
    // True forbids a key here, and allows it there.
    attn_mask = fitted.dtype() == DType::kBool ? logical_not(fitted, loc) : fitted;
  }
  const Value y =
      scaled_dot_product_attention(heads, Heads(k, loc), Heads(v, loc), attn_mask, options, loc);
  return out_proj(Joined(y, loc), loc);
}

Value MultiheadAttention::forward(const Value& x) { return forward(Values{x, x, x})[0]; }

Values MultiheadAttention::forward(const Values& in) {
  const Loc loc = internal::CallSite();
  if (in.size() != 3 && in.size() != 4) {
    return Values{nn::Fail(loc, InvalidArgument(kAttention, ": got ", in.size(),
                                                " values; expected query, key, value and perhaps "
                                                "a mask"))};
  }
  for (const Value& x : in) {
    if (!x.valid()) return Values{Value()};
  }
  const std::vector<Value>& x = in.vector();
  for (int i = 0; i < 3; ++i) {
    static constexpr const char* kNames[] = {"query", "key", "value"};
    const Shape& shape = x[static_cast<size_t>(i)].shape();
    if ((shape.rank() == 2 || shape.rank() == 3) && shape.rank() == x[0].rank() &&
        shape[shape.rank() - 1] == embed_dim_) {
      continue;
    }
    return Values{nn::Fail(
        loc, InvalidArgument(kAttention, ": ", kNames[i], " has shape ", shape, "; expected ",
                             options_.batch_first ? "[N,L," : "[L,N,", embed_dim_, "] or [L,",
                             embed_dim_, "], of the rank of query"))};
  }
  const OptionalValue mask = in.size() == 4 ? OptionalValue(x[3]) : OptionalValue(std::nullopt);
  const Value weight(in_proj_weight, loc);
  const OptionalValue bias(in_proj_bias, loc);
  // Of one operand with itself the three projections are one product.
  if (x[0].same_as(x[1]) && x[0].same_as(x[2])) {
    const Value all = linear(x[0], weight, bias, loc);
    return Values{
        Attend(Third(all, 0, -1, loc), Third(all, 1, -1, loc), Third(all, 2, -1, loc), mask, loc)};
  }
  std::vector<Value> projected;
  for (int64_t i = 0; i < 3; ++i) {
    const OptionalValue part =
        bias.has_value() ? OptionalValue(Third(bias.value(), i, 0, loc)) : bias;
    projected.push_back(linear(x[static_cast<size_t>(i)], Third(weight, i, 0, loc), part, loc));
  }
  return Values{Attend(projected[0], projected[1], projected[2], mask, loc)};
}

std::string MultiheadAttention::description() const {
  return Concat(kAttention, "(", embed_dim_, ", ", num_heads_, ")");
}

TransformerEncoderLayer::TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                                                 const TransformerEncoderLayerOptions& options)
    : self_attn(d_model, nhead, {.dropout = options.dropout, .batch_first = options.batch_first}),
      linear1(d_model, options.dim_feedforward),
      dropout(options.dropout),
      linear2(options.dim_feedforward, d_model),
      norm1({d_model}, {.eps = options.layer_norm_eps}),
      norm2({d_model}, {.eps = options.layer_norm_eps}),
      dropout1(options.dropout),
      dropout2(options.dropout),
      options_(options),
      d_model_(d_model),
      nhead_(nhead) {
  if (options.activation != "relu" && options.activation != "gelu") {
    Fail(InvalidArgument("TransformerEncoderLayer: activation is \"", options.activation,
                         "\"; expected \"relu\" or \"gelu\""));
  }
  register_module("self_attn", self_attn);
  register_module("linear1", linear1);
  register_module("dropout", dropout);
  register_module("linear2", linear2);
  register_module("norm1", norm1);
  register_module("norm2", norm2);
  register_module("dropout1", dropout1);
  register_module("dropout2", dropout2);
}

Value TransformerEncoderLayer::Attended(const Value& x, const OptionalValue& mask) {
  const Loc loc = internal::CallSite();
  if (!mask.has_value()) return dropout1(self_attn(x, loc), loc);
  return dropout1(self_attn(Values{x, x, x, mask.value()}, loc)[0], loc);
}

Value TransformerEncoderLayer::FedForward(const Value& x) {
  const Loc loc = internal::CallSite();
  const Value hidden = linear1(x, loc);
  const Value active =
      options_.activation == "gelu" ? gelu(hidden, "none", loc) : relu(hidden, loc);
  return dropout2(linear2(dropout(active, loc), loc), loc);
}

Value TransformerEncoderLayer::Layer(const Value& x, const OptionalValue& mask) {
  const Loc loc = internal::CallSite();
  const auto sum = [loc](const Value& a, const Value& b) {
    return Located(a, loc) + Located(b, loc);
  };
  if (options_.norm_first) {
    const Value attended = sum(x, Attended(norm1(x, loc), mask));
    return sum(attended, FedForward(norm2(attended, loc)));
  }
  const Value attended = norm1(sum(x, Attended(x, mask)), loc);
  return norm2(sum(attended, FedForward(attended)), loc);
}

Values TransformerEncoderLayer::forward(const Values& in) {
  if (in.size() != 1 && in.size() != 2) {
    return Values{nn::Fail(internal::CallSite(),
                           InvalidArgument("TransformerEncoderLayer: got ", in.size(),
                                           " values; expected one, and perhaps a mask"))};
  }
  const std::vector<Value>& x = in.vector();
  return Values{Layer(x[0], in.size() == 2 ? OptionalValue(x[1]) : OptionalValue(std::nullopt))};
}

std::string TransformerEncoderLayer::description() const {
  return Concat("TransformerEncoderLayer(", d_model_, ", ", nhead_, ")");
}

}  // namespace halftone::nn
