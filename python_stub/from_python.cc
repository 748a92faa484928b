#include "halftone/python_stub/from_python.h"

#include <string>
#include <vector>

#include "halftone/python_stub/errors.h"

namespace halftone::python {

namespace {

// An int, which stands for all, or `count` of them. Errors: TypeError.
std::vector<int64_t> ToExtents(py::handle object, const char* what, size_t count,
                               const char* expected) {
  if (py::isinstance<py::int_>(object)) {
    return std::vector<int64_t>(count, py::cast<int64_t>(object));
  }
  std::vector<int64_t> extents;
  if (py::isinstance<py::sequence>(object) && py::len(object) == count) {
    for (const py::handle extent : py::reinterpret_borrow<py::sequence>(object)) {
      if (py::isinstance<py::int_>(extent)) extents.push_back(py::cast<int64_t>(extent));
    }
    if (extents.size() == count) return extents;
  }
  RaiseTypeError(Concat(what, " is ", py::cast<std::string>(py::repr(object)),
                        "; expected an int or ", expected));
}

}  // namespace

nn::Size2d ToSize2d(py::handle object, const char* what) {
  const auto extents = ToExtents(object, what, 2, "a pair of ints (height, width)");
  return {extents[0], extents[1]};
}

nn::Size3d ToSize3d(py::handle object, const char* what) {
  const auto extents = ToExtents(object, what, 3, "three ints (depth, height, width)");
  return {extents[0], extents[1], extents[2]};
}

nn::Scale2d ToScale2d(py::handle object, const char* what) {
  const auto is_number = [](py::handle part) {
    return py::isinstance<py::int_>(part) || py::isinstance<py::float_>(part);
  };
  if (is_number(object)) return {py::cast<double>(object)};
  if (py::isinstance<py::sequence>(object) && py::len(object) == 2) {
    const auto pair = py::reinterpret_borrow<py::sequence>(object);
    if (is_number(pair[0]) && is_number(pair[1])) {
      return {py::cast<double>(pair[0]), py::cast<double>(pair[1])};
    }
  }
  RaiseTypeError(Concat(what, " is ", py::cast<std::string>(py::repr(object)),
                        "; expected a number or a pair of numbers (of height and width)"));
}

}  // namespace halftone::python
