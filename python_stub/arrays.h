// NumPy arrays and tensors.
#pragma once

#include <pybind11/numpy.h>

#include <map>
#include <string>

#include "halftone/core/tensor.h"
#include "halftone/python_stub/errors.h"

namespace halftone::python {

// A tensor with the values of `array`, copied once: tensors are aligned to 64 bytes and may not
// change under a step, NumPy promises neither. Any strides. `reuse`, if it has the type already, is
// overwritten and given back; nobody else may read it. Errors, beginning with `what`: TypeError for
// what is no NumPy array or scalar, or has a dtype other than float64 float32 float16 int64 int32
// uint8 bool in the machine's byte order; ValueError for more than 8 axes; MemoryError.
Tensor ToTensor(py::handle array, const std::string& what, const Tensor& reuse = {});

// An array over the tensor's own memory, which it keeps alive. bf16 and 8 bits, which NumPy lacks, become a
// float32 copy.
py::array ToArray(const Tensor& tensor);

// "f32", "float32", numpy.float32, numpy.dtype("float32"), "bf16", "bfloat16". Errors: TypeError.
DType ToDType(py::handle dtype);

// From dict of str to array. Errors: TypeError as ToTensor.
//
// Names and metadata of a checkpoint are any bytes: str holds those that are not UTF-8 as lone
// surrogates, as Python does for file names, so that two names never become one and all come back.
std::map<std::string, Tensor> ToStateDict(const py::dict& state);
py::dict FromStateDict(const std::map<std::string, Tensor>& state);
py::dict FromMetadata(const std::map<std::string, std::string>& metadata);

py::tuple ToTuple(const Shape& shape);

}  // namespace halftone::python
