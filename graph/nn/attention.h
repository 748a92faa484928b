// Attention layers, described in modules.def.
#pragma once

#include <string>

#include "halftone/graph/nn/dropout.h"
#include "halftone/graph/nn/linear.h"
#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/norm.h"
#include "halftone/graph/nn/options.h"

namespace halftone::nn {

// Example:
//   nn::MultiheadAttention attention(768, 12, {.batch_first = true});
//   y = attention(x);                  // of x with itself
//   y = attention({q, k, v, mask})[0];
class MultiheadAttention : public Module {
 public:
  using Options = MultiheadAttentionOptions;
  MultiheadAttention(int64_t embed_dim, int64_t num_heads,
                     const MultiheadAttentionOptions& options = {});
  Value forward(const Value& x) override;
  // {query, key, value}, or a mask behind them.
  Values forward(const Values& in) override;
  std::string description() const override;

  Parameter in_proj_weight;
  Parameter in_proj_bias;  // undefined without bias
  Linear out_proj;

 private:
  // [..,E] as heads: [(N,)H,L,E/H]; and back.
  Value Heads(const Value& x, Loc loc) const;
  Value Joined(const Value& heads, Loc loc) const;
  Value Attend(const Value& q, const Value& k, const Value& v, const OptionalValue& mask, Loc loc);

  int64_t embed_dim_, num_heads_;
  MultiheadAttentionOptions options_;
};

// Example: nn::TransformerEncoderLayer(768, 12, {.dim_feedforward = 3072, .activation = "gelu"})
class TransformerEncoderLayer : public Module {
 public:
  using Options = TransformerEncoderLayerOptions;
  TransformerEncoderLayer(int64_t d_model, int64_t nhead,
                          const TransformerEncoderLayerOptions& options = {});
  Value forward(const Value& x) override { return Layer(x, std::nullopt); }
  // {x, mask}: the mask as MultiheadAttention takes it.
  Values forward(const Values& in) override;
  std::string description() const override;

  MultiheadAttention self_attn;
  Linear linear1;
  Dropout dropout;
  Linear linear2;
  LayerNorm norm1, norm2;
  Dropout dropout1, dropout2;

 private:
  Value Layer(const Value& x, const OptionalValue& mask);
  Value Attended(const Value& x, const OptionalValue& mask);
  Value FedForward(const Value& x);

  TransformerEncoderLayerOptions options_;
  int64_t d_model_, nhead_;
};

}  // namespace halftone::nn
