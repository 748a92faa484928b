#include "halftone/python_stub/arrays.h"

#include <cstring>
#include <optional>
#include <vector>

namespace halftone::python {
namespace {

constexpr char kDTypes[] = "expected float64, float32, float16, int64, int32, uint8 or bool";

std::optional<DType> FromNumPy(const py::dtype& dtype) {
  // '>' where the machine is little-endian, and the reverse, need a swap; '|' has one byte.
  if (!py::cast<bool>(dtype.attr("isnative"))) return std::nullopt;
  // Attributes, not pybind11's accessors: those of 2.10 (Debian 12) read the struct of NumPy 1,
  // which NumPy 2 laid out anew.
  const auto size = py::cast<int64_t>(dtype.attr("itemsize"));
  switch (py::cast<std::string>(dtype.attr("kind")).front()) {
    case 'f':
      if (size == 8) return DType::kF64;
      if (size == 4) return DType::kF32;
      if (size == 2) return DType::kF16;
      return std::nullopt;
    case 'i':
      if (size == 8) return DType::kI64;
      if (size == 4) return DType::kI32;
      return std::nullopt;
    case 'u':
      return size == 1 ? std::optional<DType>(DType::kU8) : std::nullopt;
    case 'b':
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

const char* NumPyName(DType dtype) {
  switch (dtype) {
    case DType::kF64:
      return "float64";
    case DType::kF32:
    case DType::kBF16:
    case DType::kF8E4M3:
    case DType::kF8E5M2:
      return "float32";
    case DType::kF16:
      return "float16";
    case DType::kI64:
      return "int64";
    case DType::kI32:
      return "int32";
    case DType::kU8:
      return "uint8";
    case DType::kBool:
      return "bool";
  }
  return "float32";
}

// Subclasses of ndarray may carry more than values (the mask of a masked array), which copying
// would drop without a word. A memmap carries none.
void RequirePlainArray(py::handle array, const std::string& what) {
  const py::module_ numpy = py::module_::import("numpy");
  const py::type type = py::type::of(array);
  if (type.is(numpy.attr("ndarray")) || type.is(numpy.attr("memmap")) ||
      py::isinstance(array, numpy.attr("generic"))) {
    return;
  }
  const std::string got = Concat(what, ": got ", TypeName(array));
  if (py::isinstance(array, numpy.attr("ma").attr("MaskedArray"))) {
    RaiseTypeError(Concat(got,
                          ", whose mask a tensor cannot hold; expected a plain NumPy array, for ",
                          "example array.filled(0), and the mask as an input of its own"));
  }
  if (py::isinstance<py::array>(array)) {
    RaiseTypeError(Concat(
        got, ", a subclass of NumPy's array; expected a plain one: ", "numpy.asarray(array)"));
  }
  RaiseTypeError(Concat(got, ", expected a NumPy array"));
}

py::str Decode(const std::string& text) {
  PyObject* decoded =
      PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "surrogateescape");
  if (decoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::str>(decoded);
}

std::string Encode(py::handle text) {
  PyObject* encoded = PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogateescape");
  if (encoded == nullptr) throw py::error_already_set();
  return py::reinterpret_steal<py::bytes>(encoded);
}

}  // namespace

Tensor ToTensor(py::handle array, const std::string& what, const Tensor& reuse) {
  RequirePlainArray(array, what);
  const py::array source = py::cast<py::array>(array);
  const std::optional<DType> dtype = FromNumPy(source.dtype());
  if (!dtype.has_value()) {
    RaiseTypeError(Concat(what, ": got dtype ", py::cast<std::string>(py::str(source.dtype())),
                          "; ", kDTypes));
  }
  const std::vector<int64_t> dims(source.shape(), source.shape() + source.ndim());
  const absl::StatusOr<Shape> shape = Shape::Make(dims);
  Check(Annotate(shape.status(), what + ": "));
  // Row-major, a copy only where it is not.
  const auto dense = py::array::ensure(source, py::array::c_style);
  if (!dense) throw py::error_already_set();
  Tensor tensor = reuse;
  if (!reuse.defined() || reuse.dtype() != *dtype || reuse.shape() != *shape) {
    tensor = Unwrap(Tensor::Allocate(*dtype, *shape));
  }
  if (tensor.num_bytes() != 0) std::memcpy(tensor.raw(), dense.data(), tensor.num_bytes());
  return tensor;
}

py::array ToArray(const Tensor& tensor) {
  const Tensor shown = tensor.dtype() == DType::kBF16 || IsF8(tensor.dtype())
                           ? Unwrap(tensor.Convert(DType::kF32))
                           : tensor;
  const std::vector<py::ssize_t> dims(shown.shape().dims().begin(), shown.shape().dims().end());
  // Given, so that pybind11 does not ask the dtype for its size, see FromNumPy.
  const std::vector<py::ssize_t> strides =
      py::detail::c_strides(dims, static_cast<py::ssize_t>(SizeOf(shown.dtype())));
  auto* owner = new Tensor(shown);
  const py::capsule keep(owner, [](void* kept) { delete static_cast<Tensor*>(kept); });
  return py::array(py::dtype(NumPyName(shown.dtype())), dims, strides, owner->raw(), keep);
}

DType ToDType(py::handle dtype) {
  if (py::isinstance<py::str>(dtype)) {
    const auto name = py::cast<std::string>(dtype);
    if (name == "bfloat16") return DType::kBF16;
    if (name == "f8" || name == "float8_e4m3fn") return DType::kF8E4M3;
    if (name == "float8_e5m2") return DType::kF8E5M2;
    if (const std::optional<DType> parsed = ParseDType(name)) return *parsed;
  }
  py::object found;
  try {
    found = py::module_::import("numpy").attr("dtype")(dtype);
  } catch (py::error_already_set&) {
    found = py::object();
  }
  if (found && !dtype.is_none()) {
    if (const std::optional<DType> known = FromNumPy(py::cast<py::dtype>(found))) return *known;
  }
  RaiseTypeError(Concat("dtype is ", py::cast<std::string>(py::repr(dtype)), "; ", kDTypes,
                        ", or a string: bfloat16, float8_e4m3fn or float8_e5m2"));
}

std::map<std::string, Tensor> ToStateDict(const py::dict& state) {
  std::map<std::string, Tensor> tensors;
  for (const auto& [key, value] : state) {
    if (!py::isinstance<py::str>(key)) {
      RaiseTypeError(
          Concat("state: got a key of type ", TypeName(key), ", expected names of type str"));
    }
    const std::string name = Encode(key);
    tensors.emplace(name, ToTensor(value, Concat("state \"", name, "\"")));
  }
  return tensors;
}

py::dict FromStateDict(const std::map<std::string, Tensor>& state) {
  py::dict arrays;
  for (const auto& [name, tensor] : state) arrays[Decode(name)] = ToArray(tensor);
  return arrays;
}

py::dict FromMetadata(const std::map<std::string, std::string>& metadata) {
  py::dict texts;
  for (const auto& [key, value] : metadata) texts[Decode(key)] = Decode(value);
  return texts;
}

py::tuple ToTuple(const Shape& shape) {
  py::tuple extents(static_cast<size_t>(shape.rank()));
  for (int i = 0; i < shape.rank(); ++i) extents[static_cast<size_t>(i)] = shape[i];
  return extents;
}

}  // namespace halftone::python
