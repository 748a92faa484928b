#include "halftone/graph/nn/recurrent.h"

#include "halftone/graph/nn/module_util.h"
#include "halftone/graph/nn/trace.h"

namespace halftone::nn {
namespace {

// Part i of the first axis.
Value Part(const Value& x, int64_t i, Loc loc) {
  return squeeze(slice(x, 0, i, i + 1, 1, loc), 0, loc);
}

Value Zeros(DType dtype, const Shape& shape, Loc loc) {
  return constant(Tensor::Zeros(dtype, shape), loc);
}

absl::Status CheckRecurrentOptions(const char* name, int64_t input_size, int64_t hidden_size,
                                   const LSTMOptions& options) {
  HT_RETURN_IF_ERROR(internal::CheckPositive(name, {{"input_size", input_size},
                                                    {"hidden_size", hidden_size},
                                                    {"num_layers", options.num_layers}}));
  constexpr int64_t kMostLayers = 1000;
  if (options.num_layers > kMostLayers) {
    return InvalidArgument(name, ": num_layers is ", options.num_layers, "; expected at most ",
                           kMostLayers);
  }
  if (!(options.dropout >= 0 && options.dropout < 1)) {
    return InvalidArgument(name, ": dropout is ", options.dropout, "; expected 0 <= dropout < 1");
  }
  if (options.proj_size < 0 || options.proj_size >= hidden_size) {
    return InvalidArgument(name, ": proj_size is ", options.proj_size,
                           "; expected 0 (no projection) or less than hidden_size, ", hidden_size);
  }
  return absl::OkStatus();
}

}  // namespace

RecurrentModule::RecurrentModule(const char* name, int64_t gates, int64_t states,
                                 int64_t input_size, int64_t hidden_size, const Options& options)
    : name_(name),
      gates_(gates),
      states_(static_cast<size_t>(states)),
      input_size_(input_size),
      hidden_size_(hidden_size),
      options_(options) {
  Fail(CheckRecurrentOptions(name, input_size, hidden_size, options));
  if (!status().ok()) return;
  for (int64_t layer = 0; layer < options.num_layers; ++layer) {
    Register(layer, false);
    if (options.bidirectional) Register(layer, true);
  }
}

int64_t RecurrentModule::OutputSize() const {
  return options_.proj_size > 0 ? options_.proj_size : hidden_size_;
}
int64_t RecurrentModule::StateSize(size_t i) const { return i == 0 ? OutputSize() : hidden_size_; }

// All start uniform in +-1/sqrt(hidden_size).
void RecurrentModule::Register(int64_t layer, bool reverse) {
  const int64_t rows = gates_ * hidden_size_, directions = options_.bidirectional ? 2 : 1;
  const int64_t columns = layer == 0 ? input_size_ : directions * OutputSize();
  Direction d;
  d.reverse = reverse;
  const auto add = [&](const char* kind, Parameter& parameter, std::vector<int64_t> extents) {
    const absl::StatusOr<Shape> shape = Shape::Make(extents);
    if (!shape.ok()) return Fail(shape.status());
    parameter = Parameter(*shape, internal::UniformOfFanIn(hidden_size_));
    register_parameter(Concat(kind, "_l", layer, reverse ? "_reverse" : ""), parameter);
  };
  add("weight_ih", d.weight_ih, {rows, columns});
  add("weight_hh", d.weight_hh, {rows, OutputSize()});
  if (options_.bias) {
    add("bias_ih", d.bias_ih, {rows});
    add("bias_hh", d.bias_hh, {rows});
  }
  if (options_.proj_size > 0) add("weight_hr", d.weight_hr, {options_.proj_size, hidden_size_});
  directions_.push_back(std::move(d));
}

bool RecurrentModule::CheckShapes(const std::vector<Value>& in, Loc loc) const {
  if (in.size() != 1 && in.size() != 1 + states_) {
    nn::Fail(loc, InvalidArgument(name_, ": got ", in.size(), " values; expected x, or x and the ",
                                  states_ == 1 ? "state h0" : "states h0 and c0"));
    return false;
  }
  for (const Value& x : in) {
    if (!x.valid()) return false;
  }
  const Value& x = in[0];
  if ((x.rank() != 2 && x.rank() != 3) || x.shape()[x.rank() - 1] != input_size_) {
    nn::Fail(loc, InvalidArgument(name_, ": x has shape ", x.shape(), "; expected ",
                                  options_.batch_first ? "[B,T," : "[T,B,", input_size_, "] or [T,",
                                  input_size_, "]"));
    return false;
  }
  for (size_t i = 1; i < in.size(); ++i) {
    std::vector<int64_t> extents = {static_cast<int64_t>(directions_.size())};
    if (x.rank() == 3) extents.push_back(x.shape()[options_.batch_first ? 0 : 1]);
    extents.push_back(StateSize(i - 1));
    if (in[i].shape() == Shape(extents)) continue;
    nn::Fail(loc, InvalidArgument(name_, ": ", i == 1 ? "h0" : "c0", " has shape ", in[i].shape(),
                                  "; expected ", Shape(extents)));
    return false;
  }
  return true;
}

// x [T,B,I], a state [layers * directions,B,..].
Values RecurrentModule::Stacked(const Value& x, const std::vector<Value>& state, Loc loc) {
  const int64_t batch = x.shape()[1];
  const size_t per_layer = options_.bidirectional ? 2 : 1;
  std::vector<std::vector<Value>> last(states_);
  Value y = x;
  for (size_t first = 0; first < directions_.size(); first += per_layer) {
    if (first > 0 && options_.dropout > 0) y = dropout(y, options_.dropout, loc);
    std::vector<Value> outputs;
    for (size_t i = first; i < first + per_layer; ++i) {
      std::vector<Value> before;
      for (size_t s = 0; s < states_; ++s) {
        before.push_back(state.empty() ? Zeros(DType::kF32, {batch, StateSize(s)}, loc)
                                       : Part(state[s], static_cast<int64_t>(i), loc));
      }
      const Values out = Run(directions_[i], y, before, loc);
      outputs.push_back(out.vector()[0]);
      for (size_t s = 0; s < states_; ++s) last[s].push_back(out.vector()[s + 1]);
    }
    y = per_layer == 1 ? outputs[0] : concat(outputs, -1, loc);
  }
  Values all{y};
  for (const std::vector<Value>& of_all : last) all.push_back(stack(of_all, 0, loc));
  return all;
}

Values RecurrentModule::forward(const Values& in) {
  const Loc loc = internal::CallSite();
  if (!CheckShapes(in.vector(), loc)) return Values(std::vector<Value>(1 + states_));
  const bool batched = in.vector()[0].rank() == 3, first = batched && options_.batch_first;
  std::vector<Value> x = in.vector();
  if (first) x[0] = transpose(x[0], 0, 1, loc);
  for (Value& each : x) {
    if (!batched) each = unsqueeze(each, 1, loc);
  }
  const Values out = Stacked(x[0], std::vector<Value>(x.begin() + 1, x.end()), loc);
  std::vector<Value> results = out.vector();
  if (first) results[0] = transpose(results[0], 0, 1, loc);
  for (Value& each : results) {
    if (!batched && each.valid()) each = squeeze(each, 1, loc);
  }
  return Values(std::move(results));
}

Value RecurrentModule::forward(const Value& x) { return forward(Values{x}).vector()[0]; }

std::string RecurrentModule::description() const {
  return Concat(name_, "(", input_size_, ", ", hidden_size_, ")");
}

LSTM::LSTM(int64_t input_size, int64_t hidden_size, const LSTMOptions& options)
    : RecurrentModule("LSTM", 4, 2, input_size, hidden_size, options) {}

Values LSTM::Run(const Direction& d, const Value& x, const std::vector<Value>& state, Loc loc) {
  return lstm(x, state[0], state[1], Value(d.weight_ih, loc), Value(d.weight_hh, loc),
              {d.bias_ih, loc}, {d.bias_hh, loc}, {d.weight_hr, loc}, {.reverse = d.reverse}, loc);
}

GRU::GRU(int64_t input_size, int64_t hidden_size, const GRUOptions& options)
    : RecurrentModule("GRU", 3, 1, input_size, hidden_size,
                      {.num_layers = options.num_layers,
                       .bias = options.bias,
                       .batch_first = options.batch_first,
                       .dropout = options.dropout,
                       .bidirectional = options.bidirectional}) {}

Values GRU::Run(const Direction& d, const Value& x, const std::vector<Value>& state, Loc loc) {
  return gru(x, state[0], Value(d.weight_ih, loc), Value(d.weight_hh, loc), {d.bias_ih, loc},
             {d.bias_hh, loc}, {.reverse = d.reverse}, loc);
}

}  // namespace halftone::nn
