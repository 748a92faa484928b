// Cycles of Python objects through ones that C++ keeps.
#pragma once

#include <pybind11/pybind11.h>

namespace halftone::python {

// For the py::class_ of a type whose instances keep others by py::keep_alive (a module its
// children, a graph its modules): shows those to Python's collector, which otherwise would never
// free a cycle such as a module with an attribute that is its parent.
pybind11::custom_type_setup Collectable();

}  // namespace halftone::python
