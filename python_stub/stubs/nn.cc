// Writes nn.pyi: the stub that is written by hand, which it reads, and the layers and functions,
// from what C++ declares. Run by the build.
#include <cstdint>
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include "halftone/python_stub/declared.h"
#include "halftone/python_stub/stubs/stub_text.h"

namespace halftone::python {
namespace {

using Parameters = std::vector<std::string>;

const char* TypeName(Type<nn::Value>) { return "_Input"; }
const char* TypeName(Type<nn::OptionalValue>) { return "Optional[_Input]"; }
const char* TypeName(Type<std::vector<nn::Value>>) { return "Sequence[_Input]"; }
const char* TypeName(Type<nn::Located>) { return "_Operand"; }
const char* TypeName(Type<ValueFunction>) { return "Callable[[Value], Value]"; }
const char* TypeName(Type<nn::Size2d>) { return "_Size2d"; }
const char* TypeName(Type<nn::Size3d>) { return "_Size3d"; }
const char* TypeName(Type<nn::Scale2d>) { return "_Scale2d"; }
const char* TypeName(Type<nn::AxisList>) { return "_Axes"; }
const char* TypeName(Type<nn::SplitSizes>) { return "Union[int, Sequence[int]]"; }
const char* TypeName(Type<Tensor>) { return "_ArrayOrScalar"; }
const char* TypeName(Type<DType>) { return "Union[str, DTypeLike]"; }
const char* TypeName(Type<int64_t>) { return "int"; }
const char* TypeName(Type<double>) { return "float"; }
const char* TypeName(Type<bool>) { return "bool"; }
const char* TypeName(Type<std::string>) { return "str"; }
const char* TypeName(Type<std::vector<int64_t>>) { return "Sequence[int]"; }
template <typename T>
std::string TypeName(Type<std::optional<T>>) {
  return std::string("Optional[") + TypeName(Type<T>()) + "]";
}

const char* ResultName(Type<nn::Value>) { return "Value"; }
const char* ResultName(Type<nn::Values>) { return "list[Value]"; }

std::string Default(const nn::OptionalValue& /*none*/) { return "None"; }
std::string Default(const nn::Size2d& size) {
  return size.h == size.w ? Literal(size.h) : Concat("(", size.h, ", ", size.w, ")");
}
std::string Default(const nn::Size3d& size) {
  return size.d == size.h && size.h == size.w
             ? Literal(size.h)
             : Concat("(", size.d, ", ", size.h, ", ", size.w, ")");
}
std::string Default(DType dtype) { return Literal(std::string(Name(dtype))); }
std::string Default(const nn::Scale2d& scale) {
  return scale.h == scale.w ? Literal(scale.h)
                            : Concat("(", Literal(scale.h), ", ", Literal(scale.w), ")");
}
std::string Default(const nn::AxisList& /*all*/) { return "None"; }
template <typename T>
std::string Default(const T& value) {
  return Literal(value);
}
template <typename T>
std::string Default(const std::optional<T>& value) {
  return value ? Default(*value) : "None";
}

template <typename T>
std::string Head(const Required<T>& parameter) {
  return Concat(parameter.name, ": ", TypeName(Type<T>()));
}
template <typename T>
std::string Head(const Defaulted<T>& parameter) {
  return Concat(parameter.name, ": ", TypeName(Type<T>()), " = ", Default(parameter.value));
}
template <typename Options, typename T>
std::string Head(const Option<Options, T>& option) {
  return Concat(option.name, ": ", TypeName(Type<T>()), " = ", Default(Options().*option.member));
}

// Adds those of a declaration, its options last.
template <typename Declared>
Parameters ParametersOf(const Declared& declared, Parameters parameters = {}) {
  const auto add = [&](const auto&... parameter) { (parameters.push_back(Head(parameter)), ...); };
  std::apply(add, declared.parameters);
  std::apply(add, OptionsOf(declared.options));
  return parameters;
}

void PrintClass(const char* name, const std::string& doc, const Parameters& attributes,
                const Parameters& parameters, const char* base = "_Layer") {
  std::cout << "\n" << ClassStub(name, base, doc, attributes, parameters);
}

void PrintFunction(const char* name, const Parameters& parameters, const char* result,
                   const std::string& doc) {
  std::cout << "\n" << FunctionStub(name, parameters, result, doc);
}

void PrintElementwise() {
#define HT_ACTIVATION(op, Formula, Layer, ...)    \
  PrintClass(#Layer, DocOfOp(#op), {}, {"self"}); \
  PrintFunction(#op, {"x: _Input"}, "Value", DocOfOp(#op));
#define HT_UNARY(op, ...) PrintFunction(#op, {"x: _Input"}, "Value", DocOfOp(#op));
#define HT_TUNABLE(...)
#define HT_PREDICATE HT_UNARY
#define HT_LOGICAL_UNARY HT_UNARY
#define HT_BINARY(op, ...) \
  PrintFunction(#op, {"a: _Operand", "b: _Operand"}, "Value", DocOfOp(#op));
#define HT_SCALAR_BINARY HT_BINARY
#define HT_COMPARE HT_BINARY
#define HT_COMPARE_SWAPPED HT_BINARY
#define HT_LOGICAL(op, ...) PrintFunction(#op, {"a: _Input", "b: _Input"}, "Value", DocOfOp(#op));
#include "halftone/graph/ops/support/elementwise.def"
}

void Print() {
  ForEachModule([](auto type, const auto& declared) {
    Parameters attributes;
    for (const auto& attribute : AttributesOf(type)) {
      attributes.push_back(
          Concat(attribute.name, attribute.optional ? ": Optional[Parameter]" : ": Parameter"));
    }
    const auto add = [&attributes](const auto& part) {
      attributes.push_back("@property");
      attributes.push_back(Concat("def ", part.name, "(self) -> ", part.type, ": ..."));
    };
    std::apply([&add](const auto&... part) { (add(part), ...); }, SubmodulesOf(type));
    const bool has_state = kTakesState<typename decltype(type)::type>;
    PrintClass(declared.name, DocOf(declared.doc, declared.options), attributes,
               ParametersOf(declared, {"self"}), has_state ? "_Recurrent" : "_Layer");
  });
  PrintElementwise();
  ForEachFunction([](auto result, const auto& /*call*/, const auto& declared) {
    PrintFunction(declared.name, ParametersOf(declared), ResultName(result),
                  DocOf(declared.doc, declared.options));
  });
}

}  // namespace
}  // namespace halftone::python

int main(int argc, char** argv) {
  return halftone::python::WriteStub(argc, argv, &halftone::python::Print);
}
