// Embedding: a table of rows chosen by index.
#pragma once

#include <optional>

#include "halftone/graph/nn/module.h"

namespace halftone::nn {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx;  // this row gets no gradient
};

// Shapes: x [..] of i64 or i32 -> [..,embedding_dim]; weight [num_embeddings,embedding_dim] starts
// normal(0,1). Unlike PyTorch's, the padding row does not start at zero.
// Errors of the run: an index outside [0, num_embeddings).
class Embedding : public Module {
 public:
  using Options = EmbeddingOptions;
  Embedding(int64_t num_embeddings, int64_t embedding_dim, const EmbeddingOptions& options = {});
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight;

 private:
  int64_t num_embeddings_, embedding_dim_;
  EmbeddingOptions options_;
};

}  // namespace halftone::nn
