// What graph/nn/functions.def and modules.def declare, and rows of elementwise.def with numbers, as
// values: the bindings and the stubs are made of it. Nothing here needs Python.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "halftone/graph/ir/op.h"
#include "halftone/halftone.h"

namespace halftone::python {

template <typename T>
struct Type {
  using type = T;
};

// A parameter of a function or of a constructor.
template <typename T>
struct Required {
  using type = T;
  const char* name;
};
template <typename T>
struct Defaulted {
  using type = T;
  const char* name;
  T value;
};

// A member of an option struct: in Python a parameter with a default.
template <typename Options, typename T>
struct Option {
  using type = T;
  const char* name;
  const char* doc;
  T Options::*member;
};

// A parameter or buffer of a module: in Python an attribute.
template <typename Module>
struct Attribute {
  const char* name;
  bool optional;
  nn::Parameter Module::*member;
};

// A module of a module: in Python an attribute that is read.
template <typename Module, typename Part>
struct Submodule {
  const char* name;
  const char* type;
  Part Module::*member;
};

struct NoOptions {};

// A module that is called with a state beside x, and gives one.
template <typename M>
inline constexpr bool kTakesState = requires {
  M::kHasState;
};

// A function or a module: what it is called with besides options, and its option struct.
template <typename Options, typename... Parameter>
struct Declaration {
  const char* name;
  const char* doc;
  std::tuple<Parameter...> parameters;
  Type<Options> options;
};

template <typename Options = NoOptions, typename... Parameter>
Declaration<Options, Parameter...> Declare(const char* name, const char* doc,
                                           std::tuple<Parameter...> parameters,
                                           Type<Options> options = {}) {
  return {name, doc, std::move(parameters), options};
}

// What stands for F in functions.def.
using ValueFunction = std::function<nn::Value(const nn::Value&)>;

// clang-format off

// OptionsOf(Type<nn::Conv2dOptions>()): its members in order.
inline std::tuple<> OptionsOf(Type<NoOptions> /*options*/) { return {}; }
#define HT_OPTIONS(Name)                               \
  inline auto OptionsOf(Type<nn::Name> /*options*/) {  \
    using Options = nn::Name;                          \
    return std::tuple_cat(std::tuple<>()
#define HT_OPTION(T, name, value, doc) \
    , std::tuple(Option<Options, decltype(Options::name)>{#name, doc, &Options::name})
#define HT_END_OPTIONS(Name) ); }
#include "halftone/graph/nn/functions.def"

#define HT_OPTIONS(Name)                               \
  inline auto OptionsOf(Type<nn::Name> /*options*/) {  \
    using Options = nn::Name;                          \
    return std::tuple_cat(std::tuple<>()
#define HT_OPTION(T, name, value, doc) \
    , std::tuple(Option<Options, decltype(Options::name)>{#name, doc, &Options::name})
#define HT_END_OPTIONS(Name) ); }
#include "halftone/graph/nn/modules.def"

// Of the layers of elementwise.def that have numbers.
#define HT_NUMBER_OPTION(name, value) \
    , std::tuple(Option<Options, double>{#name, "", &Options::name})
#define HT_TUNABLE(op, Formula, Layer, Numbers, ...)  \
  inline auto OptionsOf(Type<nn::Layer##Options> /*options*/) {  \
    using Options = nn::Layer##Options;                          \
    return std::tuple_cat(std::tuple<>() HT_EACH_NUMBER(HT_NUMBER_OPTION, Numbers)); \
  }
#include "halftone/graph/ops/support/elementwise.def"

// AttributesOf(Type<nn::Linear>()): its parameters and buffers in order.
#define HT_MODULE(Name, doc)                              \
  inline auto AttributesOf(Type<nn::Name> /*module*/) {   \
    using Module = nn::Name;                              \
    return std::vector<Attribute<Module>>{
#define HT_PARAMETER(name) {#name, false, &Module::name},
#define HT_OPTIONAL_PARAMETER(name) {#name, true, &Module::name},
#define HT_END_MODULE(Name) }; }
#include "halftone/graph/nn/modules.def"
#define HT_TUNABLE(op, Formula, Layer, Numbers, ...)                       \
  inline std::vector<Attribute<nn::Layer>> AttributesOf(Type<nn::Layer> /*module*/) { \
    return {};                                                                        \
  }
#include "halftone/graph/ops/support/elementwise.def"

// SubmodulesOf(Type<nn::TransformerEncoderLayer>()): its modules in order.
#define HT_MODULE(Name, doc)                             \
  inline auto SubmodulesOf(Type<nn::Name> /*module*/) {  \
    using Module [[maybe_unused]] = nn::Name;            \
    return std::tuple_cat(std::tuple<>()
#define HT_SUBMODULE(Class, name) \
    , std::tuple(Submodule<Module, nn::Class>{#name, #Class, &Module::name})
#define HT_END_MODULE(Name) ); }
#include "halftone/graph/nn/modules.def"
#define HT_TUNABLE(op, Formula, Layer, Numbers, ...) \
  inline std::tuple<> SubmodulesOf(Type<nn::Layer> /*module*/) { return {}; }
#include "halftone/graph/ops/support/elementwise.def"

inline const char* DocOfOp(const char* op) {
  return ir::OpRegistry::Global().Find(op)->doc.c_str();
}

// ForEachFunction(visit): visit(Type<Result>(), call, declaration) for every function, where
// call(x, ...) calls it.
#define HT_ARG(T, name) , std::tuple(Required<std::decay_t<T>>{#name})
#define HT_DEFAULT(T, name, value) , std::tuple(Defaulted<std::decay_t<T>>{#name, value})
#define HT_TAKES(Options) ), Type<Options>(
#define HT_FUNCTION(Result, name, doc)                                           \
  visit(Type<Result>(), [](const auto&... in) { return nn::name(in...); },       \
        Declare(#name, doc, std::tuple_cat(std::tuple<>()
#define HT_TEMPLATE(F, Result, name, doc) HT_FUNCTION(Result, name, doc)
#define HT_END_FUNCTION(name) )));
template <typename Visit>
void ForEachFunction(const Visit& visit) {
  using namespace nn;  // NOLINT: the types and defaults of the rows
  using F = ValueFunction;
#include "halftone/graph/nn/functions.def"
#define HT_NUMBER_DEFAULTED(name, value) , std::tuple(Defaulted<double>{#name, value})
#define HT_TUNABLE(op, Formula, Layer, Numbers, ...)                  \
  visit(Type<Value>(), [](const auto&... in) { return nn::op(in...); },          \
        Declare(#op, DocOfOp(#op), std::tuple_cat(std::tuple(Required<Value>{"x"}) \
                                     HT_EACH_NUMBER(HT_NUMBER_DEFAULTED, Numbers))));
#include "halftone/graph/ops/support/elementwise.def"
}

// ForEachModule(visit): visit(Type<nn::Linear>(), declaration) for every module.
#define HT_ARG(T, name) , std::tuple(Required<std::decay_t<T>>{#name})
#define HT_TAKES(Options) ), Type<Options>(
#define HT_MODULE(Name, doc) \
  visit(Type<nn::Name>(), Declare(#Name, doc, std::tuple_cat(std::tuple<>()
#define HT_END_MODULE(Name) )));
template <typename Visit>
void ForEachModule(const Visit& visit) {
  using namespace nn;  // NOLINT: the option structs of the rows
#include "halftone/graph/nn/modules.def"
#define HT_TUNABLE(op, Formula, Layer, Numbers, ...) \
  visit(Type<nn::Layer>(), Declare(#Layer, DocOfOp(#op), std::tuple<>(), Type<Layer##Options>()));
#include "halftone/graph/ops/support/elementwise.def"
#undef HT_NUMBER_OPTION
#undef HT_NUMBER_DEFAULTED
}
// clang-format on

// The text for people: `doc`, and of each option what it says beyond its name.
template <typename Options>
std::string DocOf(const char* doc, Type<Options> options) {
  std::string text = doc, lines;
  std::apply(
      [&lines](const auto&... option) {
        ((lines += *option.doc == '\0' ? "" : std::string("\n") + option.name + ": " + option.doc),
         ...);
      },
      OptionsOf(options));
  return lines.empty() ? text : text + "\n" + lines;
}

}  // namespace halftone::python
