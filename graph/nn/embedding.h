// Embedding: a table of rows chosen by index, described in modules.def.
#pragma once

#include <string>

#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/options.h"

namespace halftone::nn {

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
