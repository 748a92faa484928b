// bert_base: a transformer encoder of 108,595,200 parameters, twelve blocks that normalise after
// the residual sum, with learned positions and a head tied to the embedding.
#pragma once

#include <cmath>
#include <memory>
#include <numeric>
#include <vector>

#include "halftone/graph/runtime/variable_storage.h"
#include "halftone/halftone.h"

namespace halftone::benchmarks {

struct BertSize {
  int64_t batch = 8, positions = 128, vocabulary = 30522;
  int64_t width = 768, heads = 12, inner = 3072, blocks = 12;
};

class BertBlock : public nn::Module {
 public:
  explicit BertBlock(const BertSize& size)
      : size_(size),
        qkv_(size.width, 3 * size.width),
        out_(size.width, size.width),
        widen_(size.width, size.inner),
        narrow_(size.inner, size.width),
        norm1_({size.width}),
        norm2_({size.width}) {
    register_module("qkv", qkv_);
    register_module("out", out_);
    register_module("widen", widen_);
    register_module("narrow", narrow_);
    register_module("norm1", norm1_);
    register_module("norm2", norm2_);
  }

  nn::Value forward(const nn::Value& x) override {
    const nn::Value attended = norm1_(x + Attention(x));
    return norm2_(attended + narrow_(nn::gelu(widen_(attended))));
  }

 private:
  nn::Value Attention(const nn::Value& x) {
    const nn::Value qkv = qkv_(x);
    const nn::Value q = Heads(qkv, 0);
    const nn::Value k = Heads(qkv, 1);
    const nn::Value v = Heads(qkv, 2);
    const double scale = 1 / std::sqrt(static_cast<double>(size_.width / size_.heads));
    const nn::Value weights = nn::softmax(nn::matmul(q, nn::transpose(k, 2, 3)) * scale, -1);
    const nn::Value heads = nn::transpose(nn::matmul(weights, v), 1, 2);
    return out_(nn::reshape(heads, {size_.batch, size_.positions, size_.width}));
  }

  // Part `i` of the projection as [batch, heads, positions, width / heads].
  nn::Value Heads(const nn::Value& qkv, int64_t i) const {
    const nn::Value part = nn::slice(qkv, 2, i * size_.width, (i + 1) * size_.width);
    return nn::transpose(
        nn::reshape(part, {size_.batch, size_.positions, size_.heads, size_.width / size_.heads}),
        1, 2);
  }

  const BertSize size_;
  nn::Linear qkv_, out_, widen_, narrow_;
  nn::LayerNorm norm1_, norm2_;
};

// In: ids i64 [8,128], targets i64 [1024]; out: the mean cross-entropy over all positions.
class BertBase : public nn::Graph {
 public:
  explicit BertBase(const BertSize& size = {})
      : Graph("bert_base"),
        tokens(size.vocabulary, size.width),
        positions(size.positions, size.width),
        norm({size.width}),
        size_(size) {
    add_module("tokens", tokens);
    add_module("positions", positions);
    for (int64_t i = 0; i < size.blocks; ++i) blocks.emplace<BertBlock>(size);
    add_module("blocks", blocks);
    add_module("norm", norm);
    add_optimizer(optim::AdamW(parameters(), {.lr = 1e-4}));
  }

  nn::Values build(const nn::Values& in) override {
    std::vector<double> numbers(static_cast<size_t>(size_.positions));
    std::iota(numbers.begin(), numbers.end(), 0.0);
    const nn::Value places = nn::constant(Tensor::Of(DType::kI64, {size_.positions}, numbers));
    const nn::Value embedded = tokens(in[0]);
    const nn::Value hidden = norm(blocks(embedded + positions(places)));
    const nn::Value rows = nn::reshape(hidden, {size_.batch * size_.positions, size_.width});
    nn::Value loss = nn::cross_entropy(nn::linear(rows, tokens.weight), in[1]);
    loss.backward();
    return {loss};
  }

  int64_t num_parameters() const {
    int64_t count = 0;
    for (const auto& parameter : parameters()) count += parameter->shape().num_elements();
    return count;
  }

  nn::Embedding tokens, positions;
  nn::Sequential blocks;
  nn::LayerNorm norm;

 private:
  const BertSize size_;
};

}  // namespace halftone::benchmarks
