// Transformers over tokens: an encoder of BERT's size, and GPT-2's decoder. Sources: Vaswani et al.,
// "Attention is all you need", 2017 (arXiv:1706.03762); Devlin et al., 2019 (arXiv:1810.04805);
// Radford et al., "Language models are unsupervised multitask learners", 2019.
#pragma once

#include <cstdint>
#include <optional>

#include "halftone/halftone.h"

namespace halftone::models {

struct TransformerOptions {
  int64_t vocabulary = 30522;
  int64_t positions = 128;  // the longest sequence
  int64_t width = 768, heads = 12, inner = 3072, blocks = 12;
  double dropout = 0;
  // Position i sees 0..i alone.
  bool causal = false;
  // Norms before attention and the inner layers, not behind the sums.
  bool pre_norm = false;
};

// 108,595,200 parameters.
inline TransformerOptions BertBase() { return {}; }
// 123,849,984 parameters with 256 positions, as the benchmarks have it.
inline TransformerOptions Gpt2Small(int64_t positions = 1024) {
  return {.vocabulary = 50257, .positions = positions, .causal = true, .pre_norm = true};
}

// Shapes: x [N,L,width], out alike.
class TransformerBlock : public nn::Module {
 public:
  explicit TransformerBlock(const TransformerOptions& options)
      : qkv(options.width, 3 * options.width),
        proj(options.width, options.width),
        fc1(options.width, options.inner),
        fc2(options.inner, options.width),
        norm1({options.width}),
        norm2({options.width}),
        options_(options) {
    register_module("qkv", qkv);
    register_module("proj", proj);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
    register_module("norm1", norm1);
    register_module("norm2", norm2);
  }

  nn::Value forward(const nn::Value& x) override {
    if (options_.pre_norm) {
      const nn::Value attended = x + Dropped(Attention(norm1(x)));
      return attended + Dropped(Inner(norm2(attended)));
    }
    const nn::Value attended = norm1(x + Dropped(Attention(x)));
    return norm2(attended + Dropped(Inner(attended)));
  }

  nn::Linear qkv, proj, fc1, fc2;
  nn::LayerNorm norm1, norm2;

 private:
  nn::Value Dropped(const nn::Value& x) const {
    return options_.dropout > 0 ? nn::dropout(x, options_.dropout) : x;
  }
  nn::Value Inner(const nn::Value& x) { return fc2(nn::gelu(fc1(x))); }

  nn::Value Attention(const nn::Value& x) {
    const nn::Values parts = nn::chunk(qkv(x), 3, -1);
    const nn::Value heads = nn::scaled_dot_product_attention(
        Heads(parts[0]), Heads(parts[1]), Heads(parts[2]), std::nullopt,
        {.dropout_p = options_.dropout, .is_causal = options_.causal});
    return proj(nn::flatten(nn::transpose(heads, 1, 2), 2));
  }
  // [N,L,width] as [N,heads,L,width/heads].
  nn::Value Heads(const nn::Value& x) const {
    const int64_t heads = options_.heads;
    return nn::transpose(
        nn::reshape(x, {x.shape()[0], x.shape()[1], heads, options_.width / heads}), 1, 2);
  }

  TransformerOptions options_;
};

// Scores of the next or hidden token at each position, by the embedding's own table. Shapes: ids
// [N,L] (i64 or i32), L at most options.positions -> [N,L,vocabulary].
// Errors (of the trace): a longer sequence.
class Transformer : public nn::Module {
 public:
  explicit Transformer(const TransformerOptions& options)
      : tokens(options.vocabulary, options.width),
        positions(options.positions, options.width),
        norm({options.width}),
        options_(options) {
    register_module("tokens", tokens);
    register_module("positions", positions);
    for (int64_t i = 0; i < options.blocks; ++i) blocks.emplace<TransformerBlock>(options);
    register_module("blocks", blocks);
    register_module("norm", norm);
  }

  nn::Value forward(const nn::Value& ids) override {
    const int64_t length = ids.shape()[1];
    const nn::Value places = nn::slice(positions.weight, 0, 0, length);
    nn::Value x = tokens(ids) + places;
    if (options_.dropout > 0) x = nn::dropout(x, options_.dropout);
    return nn::linear(norm(blocks(x)), tokens.weight);
  }

  nn::Embedding tokens, positions;
  nn::Sequential blocks;
  nn::LayerNorm norm;

 private:
  TransformerOptions options_;
};

}  // namespace halftone::models
