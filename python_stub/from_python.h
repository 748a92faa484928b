// How Python gives the arguments of declared functions and modules.
#pragma once

#include <pybind11/stl.h>

#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "halftone/python_stub/arrays.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/declared.h"

namespace halftone::python {

// Height and width: an int, or a pair. Errors: TypeError.
nn::Size2d ToSize2d(py::handle object, const char* what);
// Depth, height and width: an int, or three. Errors: TypeError.
nn::Size3d ToSize3d(py::handle object, const char* what);

// Factors of both: a number, or a pair. Errors: TypeError.
nn::Scale2d ToScale2d(py::handle object, const char* what);

// What an argument is for: part of messages.
struct ArgumentName {
  const char* function;
  const char* parameter;
};

// In: the type that pybind11 converts to. From: a T made of it. To: a default as Python has it.
template <typename T>
struct Python {
  using In = T;
  static const T& From(const T& in, ArgumentName /*name*/) { return in; }
  static py::object To(const T& value) { return py::cast(value); }
};

template <>
struct Python<nn::OptionalValue> {
  using In = std::optional<nn::Value>;
  static nn::OptionalValue From(const In& in, ArgumentName /*name*/) {
    return in ? nn::OptionalValue(*in) : nn::OptionalValue(std::nullopt);
  }
  static py::object To(const nn::OptionalValue& /*none*/) { return py::none(); }
};

template <>
struct Python<nn::Located> {
  using In = py::object;
  static nn::Located From(const py::object& in, ArgumentName /*name*/) { return ToOperand(in); }
};

template <>
struct Python<nn::Size2d> {
  using In = py::object;
  static nn::Size2d From(const py::object& in, ArgumentName name) {
    return ToSize2d(in, name.parameter);
  }
  static py::object To(const nn::Size2d& size) {
    if (size.h == size.w) return py::int_(size.h);
    return py::make_tuple(size.h, size.w);
  }
};

template <>
struct Python<nn::Size3d> {
  using In = py::object;
  static nn::Size3d From(const py::object& in, ArgumentName name) {
    return ToSize3d(in, name.parameter);
  }
  static py::object To(const nn::Size3d& size) {
    if (size.d == size.h && size.h == size.w) return py::int_(size.h);
    return py::make_tuple(size.d, size.h, size.w);
  }
};

template <>
struct Python<nn::Scale2d> {
  using In = py::object;
  static nn::Scale2d From(const py::object& in, ArgumentName name) {
    return ToScale2d(in, name.parameter);
  }
  static py::object To(const nn::Scale2d& scale) {
    if (scale.h == scale.w) return py::float_(scale.h);
    return py::make_tuple(scale.h, scale.w);
  }
};

// None, or what stands for a T that pybind11 does not know.
template <typename T>
requires std::is_same_v<typename Python<T>::In, py::object>
struct Python<std::optional<T>> {
  using In = py::object;
  static std::optional<T> From(const py::object& in, ArgumentName name) {
    if (in.is_none()) return std::nullopt;
    return Python<T>::From(in, name);
  }
  static py::object To(const std::optional<T>& value) {
    return value ? Python<T>::To(*value) : py::object(py::none());
  }
};

// None (all), an int, or several.
template <>
struct Python<nn::AxisList> {
  using In = py::object;
  static nn::AxisList From(const py::object& in, ArgumentName /*name*/) {
    if (in.is_none()) return {};
    if (py::isinstance<py::int_>(in)) return {py::cast<int64_t>(in)};
    return {py::cast<std::vector<int64_t>>(in)};
  }
  static py::object To(const nn::AxisList& list) {
    return list.axes.empty() ? py::object(py::none()) : py::cast(list.axes);
  }
};

// An int, or several.
template <>
struct Python<nn::SplitSizes> {
  using In = py::object;
  static nn::SplitSizes From(const py::object& in, ArgumentName /*name*/) {
    if (py::isinstance<py::int_>(in)) return nn::SplitSizes(py::cast<int64_t>(in));
    return nn::SplitSizes(py::cast<std::vector<int64_t>>(in));
  }
};

template <>
struct Python<DType> {
  using In = py::object;
  static DType From(const py::object& in, ArgumentName /*name*/) { return ToDType(in); }
  static py::object To(DType dtype) { return py::str(Name(dtype)); }
};

template <>
struct Python<Tensor> {
  using In = py::object;
  static Tensor From(const py::object& in, ArgumentName name) {
    return ToTensor(in, name.function);
  }
};

template <>
struct Python<ValueFunction> {
  using In = py::function;
  static ValueFunction From(const py::function& in, ArgumentName name) {
    return [in, name](const nn::Value& x) {
      const py::object y = in(x);
      if (!py::isinstance<nn::Value>(y)) {
        RaiseTypeError(Concat(name.function, ": ", name.parameter, " did not return a Value"));
      }
      return py::cast<nn::Value>(y);
    };
  }
};

// What pybind11 is told of a parameter.
template <typename T>
py::arg NamedArgument(const Required<T>& parameter) {
  return py::arg(parameter.name);
}
template <typename T>
py::arg_v NamedArgument(const Defaulted<T>& parameter) {
  return py::arg(parameter.name) = Python<T>::To(parameter.value);
}
template <typename Options, typename T>
py::arg_v NamedArgument(const Option<Options, T>& option) {
  return py::arg(option.name) = Python<T>::To(Options().*option.member);
}

// Calls give(callable, argument...) with `target` as Python calls it: with the parameters, and in
// the place of an option struct with each of its members. `before` comes before anything is
// converted.
template <typename Options, typename... P, typename Target, typename Before, typename Give>
void WithPythonArguments(const Declaration<Options, P...>& declared, const Target& target,
                         const Before& before, const Give& give) {
  const auto options = [&]<typename... O>(const Option<Options, O>&... option) {
    const auto parameters = [&](const P&... parameter) {
      const char* const function = declared.name;
      give(
          [=](typename Python<typename P::type>::In... in, typename Python<O>::In... option_in) {
            before();
            std::tuple<typename P::type...> values{
                Python<typename P::type>::From(in, {function, parameter.name})...};
            if constexpr (std::is_same_v<Options, NoOptions>) {
              return std::apply(target, std::move(values));
            } else {
              Options made;
              ((made.*option.member = Python<O>::From(option_in, {function, option.name})), ...);
              return std::apply(target, std::tuple_cat(std::move(values), std::tie(made)));
            }
          },
          NamedArgument(parameter)..., NamedArgument(option)...);
    };
    std::apply(parameters, declared.parameters);
  };
  std::apply(options, OptionsOf(declared.options));
}

}  // namespace halftone::python
