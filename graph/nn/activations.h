// Activations and Flatten as layers, for Sequential. Those with options are described in
// modules.def.
#pragma once

#include <concepts>
#include <initializer_list>
#include <string>
#include <utility>

#include "halftone/graph/nn/functional.h"
#include "halftone/graph/nn/module.h"

namespace halftone::nn {

namespace internal {
// "Hardtanh(min_val=-1, max_val=1)".
std::string DescriptionOf(const char* layer,
                          std::initializer_list<std::pair<const char*, double>> numbers);
}  // namespace internal

// A layer for every activation of graph/ops/support/elementwise.def, called as in PyTorch: ReLU
// applies nn::relu.
#define HT_ACTIVATION(op, Formula, Layer, ...)                                     \
  class Layer : public Module {                                                    \
   public:                                                                         \
    Value forward(const Value& x) override { return op(x, internal::CallSite()); } \
    std::string description() const override { return #Layer "()"; }               \
  };
#include "halftone/graph/ops/support/elementwise.def"

// And for every one with numbers: LeakyReLU(0.2), LeakyReLU({.negative_slope = 0.2}).
#define HT_NUMBER_ARGUMENT(name, value) options_.name,
#define HT_NUMBER_NAMED(name, value) {#name, options_.name},
#define HT_TUNABLE(op, Formula, Layer, Numbers, ...)                                      \
  class Layer : public Module {                                                           \
   public:                                                                                \
    using Options = Layer##Options;                                                       \
    explicit Layer(const Options& options = {}) : options_(options) {}                    \
    template <std::convertible_to<double>... N>                                           \
    requires(sizeof...(N) > 0) explicit Layer(N... numbers)                               \
        : options_{static_cast<double>(numbers)...} {}                                    \
    Value forward(const Value& x) override {                                              \
      return op(x, HT_EACH_NUMBER(HT_NUMBER_ARGUMENT, Numbers) internal::CallSite());     \
    }                                                                                     \
    std::string description() const override {                                            \
      return internal::DescriptionOf(#Layer, {HT_EACH_NUMBER(HT_NUMBER_NAMED, Numbers)}); \
    }                                                                                     \
                                                                                          \
   private:                                                                               \
    Options options_;                                                                     \
  };
#include "halftone/graph/ops/support/elementwise.def"
#undef HT_NUMBER_ARGUMENT
#undef HT_NUMBER_NAMED

class GELU : public Module {
 public:
  using Options = GELUOptions;
  explicit GELU(GELUOptions options = {}) : options_(std::move(options)) {}
  explicit GELU(std::string approximate) : options_{std::move(approximate)} {}
  Value forward(const Value& x) override {
    return gelu(x, options_.approximate, internal::CallSite());
  }
  std::string description() const override { return "GELU(" + options_.approximate + ")"; }

 private:
  GELUOptions options_;
};

class PReLU : public Module {
 public:
  using Options = PReLUOptions;
  explicit PReLU(const PReLUOptions& options = {});
  explicit PReLU(int64_t num_parameters) : PReLU(PReLUOptions{num_parameters}) {}
  Value forward(const Value& x) override;
  std::string description() const override;

  Parameter weight;

 private:
  int64_t num_parameters_;
};

class Flatten : public Module {
 public:
  using Options = FlattenOptions;
  explicit Flatten(const FlattenOptions& options = {}) : options_(options) {}
  explicit Flatten(int64_t first, int64_t last = FlattenOptions{}.last) : options_{first, last} {}
  Value forward(const Value& x) override {
    return flatten(x, options_.first, options_.last, internal::CallSite());
  }
  std::string description() const override { return "Flatten()"; }

 private:
  FlattenOptions options_;
};

}  // namespace halftone::nn
