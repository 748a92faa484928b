// Recurrent layers, described in modules.def.
#pragma once

#include <string>
#include <vector>

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/module.h"
#include "halftone/graph/nn/options.h"

namespace halftone::nn {

// What recurrent layers share: layers and directions, and parameters in PyTorch's order under its
// names. Not a layer itself.
class RecurrentModule : public Module {
 public:
  // Its results: of x alone; see the layers.
  Value forward(const Value& x) override;
  Values forward(const Values& in) override;
  std::string description() const override;
  // Python calls it as PyTorch does: output, state = layer(x, state), where several tensors of a state
  // are a tuple.
  static constexpr bool kHasState = true;

 protected:
  using Options = LSTMOptions;  // those of all layers
  // `gates`: rows of the weights for each of hidden_size; `states`: tensors of a state.
  RecurrentModule(const char* name, int64_t gates, int64_t states, int64_t input_size,
                  int64_t hidden_size, const Options& options);
  RecurrentModule(RecurrentModule&&) noexcept = default;

  // One layer in one direction.
  struct Direction {
    Parameter weight_ih, weight_hh, bias_ih, bias_hh, weight_hr;  // undefined: there is none
    bool reverse;
  };
  // Its output, and its state after the last step.
  virtual Values Run(const Direction& direction, const Value& x, const std::vector<Value>& state,
                     Loc loc) = 0;

 private:
  int64_t OutputSize() const;  // of h
  int64_t StateSize(size_t i) const;
  void Register(int64_t layer, bool reverse);
  // [T,B,I] from what was given; and the results back.
  Values Stacked(const Value& x, const std::vector<Value>& state, Loc loc);
  bool CheckShapes(const std::vector<Value>& in, Loc loc) const;

  const char* name_;
  int64_t gates_;
  size_t states_;
  int64_t input_size_, hidden_size_;
  Options options_;
  std::vector<Direction> directions_;  // of a layer next to each other
};

// Example:
//   nn::LSTM lstm(64, 128, {.num_layers = 2, .batch_first = true});
//   y = lstm(x);                            // the output alone
//   out = lstm(nn::Values{x});  y = out[0], h_n = out[1], c_n = out[2];
//   out = lstm({x, h0, c0});
class LSTM : public RecurrentModule {
 public:
  using Options = LSTMOptions;
  LSTM(int64_t input_size, int64_t hidden_size, const LSTMOptions& options = {});

 private:
  Values Run(const Direction& direction, const Value& x, const std::vector<Value>& state,
             Loc loc) override;
};

// Example: nn::GRU gru(64, 128, {.bidirectional = true}); y = gru({x, h0})[0];
class GRU : public RecurrentModule {
 public:
  using Options = GRUOptions;
  GRU(int64_t input_size, int64_t hidden_size, const GRUOptions& options = {});

 private:
  Values Run(const Direction& direction, const Value& x, const std::vector<Value>& state,
             Loc loc) override;
};

}  // namespace halftone::nn
