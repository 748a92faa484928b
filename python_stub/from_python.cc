#include "halftone/python_stub/from_python.h"

#include <string>

#include "halftone/python_stub/errors.h"

namespace halftone::python {

nn::Size2d ToSize2d(py::handle object, const char* what) {
  if (py::isinstance<py::int_>(object)) return {py::cast<int64_t>(object)};
  if (py::isinstance<py::sequence>(object) && py::len(object) == 2) {
    const auto pair = py::reinterpret_borrow<py::sequence>(object);
    if (py::isinstance<py::int_>(pair[0]) && py::isinstance<py::int_>(pair[1])) {
      return {py::cast<int64_t>(pair[0]), py::cast<int64_t>(pair[1])};
    }
  }
  RaiseTypeError(Concat(what, " is ", py::cast<std::string>(py::repr(object)),
                        "; expected an int or a pair of ints (height, width)"));
}

}  // namespace halftone::python
