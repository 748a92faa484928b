// Sequential, ModuleList, ModuleDict. Those of C++ own their modules, which Python cannot give
// away; these refer to objects that keep_alive holds, so that the collector sees them.
#include <pybind11/stl.h>

#include <algorithm>
#include <memory>

#include "halftone/graph/nn/module.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/errors.h"

namespace halftone::python {
namespace {

class Container : public nn::Module {
 public:
  explicit Container(const char* type) : type_(type) {}
  std::string description() const override { return Concat(type_, "(", children().size(), ")"); }
  bool is_container() const override { return true; }

  size_t size() const { return children().size(); }
  // The object that Python knows.
  py::object Get(size_t i) const {
    return py::cast(children()[i].second, py::return_value_policy::reference);
  }
  void Add(const std::string& name, py::handle module) {
    if (!py::isinstance<nn::Module>(module)) {
      RaiseTypeError(
          Concat(type_, ": got ", py::cast<std::string>(py::repr(module)), ", expected modules"));
    }
    RegisterModule(*this, name, module);
  }

 protected:
  const char* type() const { return type_; }

 private:
  const char* type_;
};

class List : public Container {
 public:
  using Container::Container;

  py::object At(int64_t i) const {
    const auto count = static_cast<int64_t>(size());
    const int64_t at = i < 0 ? i + count : i;
    if (at < 0 || at >= count) {
      Raise(OutOfRange(type(), "[", i, "]: there are ", count, " modules"));
    }
    return Get(static_cast<size_t>(at));
  }
  void Append(py::handle module) { Add(std::to_string(size()), module); }
  // As list.insert: an index beyond either end means that end. Names behind it change.
  void Insert(int64_t index, py::handle module) {
    const auto count = static_cast<int64_t>(size());
    const int64_t at = std::clamp<int64_t>(index < 0 ? index + count : index, 0, count);
    Append(module);
    std::vector<std::pair<std::string, nn::Module*>> renamed = children();
    std::rotate(renamed.begin() + at, renamed.end() - 1, renamed.end());
    for (size_t i = 0; i < renamed.size(); ++i) renamed[i].first = std::to_string(i);
    RenameModules(std::move(renamed));
  }
};

class ModuleList : public List {
 public:
  ModuleList() : List("ModuleList") {}
};

class Sequential : public List {
 public:
  Sequential() : List("Sequential") {}
  py::object Forward(py::object x) const {
    for (size_t i = 0; i < size(); ++i) x = Get(i)(x);
    return x;
  }
};

class ModuleDict : public Container {
 public:
  ModuleDict() : Container("ModuleDict") {}
  py::object Find(const std::string& key) const {
    for (size_t i = 0; i < size(); ++i) {
      if (children()[i].first == key) return Get(i);
    }
    return py::none();
  }
  py::list Keys() const {
    py::list keys;
    for (const auto& [key, module] : children()) keys.append(Text(key));
    return keys;
  }
};

void Keep(py::handle self, py::handle module) { py::detail::keep_alive_impl(self, module); }

// Makes the C++ object of `self`, filled by `fill(container, keep)`.
template <typename C, typename Fill>
void Construct(py::detail::value_and_holder& self, const Fill& fill) {
  auto container = std::make_unique<C>();
  fill(*container, reinterpret_cast<PyObject*>(self.inst));
  self.value_ptr() = container.release();
}

template <typename C>
void AppendAll(C& list, py::handle self, py::handle modules) {
  for (py::handle module : py::reinterpret_borrow<py::iterable>(modules)) {
    list.Append(module);
    Keep(self, module);
  }
}

void AddItems(ModuleDict& dict, py::handle self, const py::dict& modules) {
  for (const auto& [key, module] : modules) {
    dict.Add(py::cast<std::string>(py::str(key)), module);
    Keep(self, module);
  }
}

template <typename C>
void BindList(py::class_<C, nn::Module>& list) {
  list.def(
          "append",
          [](const py::object& self, const py::object& module) {
            py::cast<C&>(self).Append(module);
            Keep(self, module);
            return self;
          },
          py::arg("module"))
      .def(
          "extend",
          [](const py::object& self, const py::iterable& modules) {
            AppendAll(py::cast<C&>(self), self, modules);
            return self;
          },
          py::arg("modules"))
      .def(
          "insert",
          [](const py::object& self, int64_t index, const py::object& module) {
            py::cast<C&>(self).Insert(index, module);
            Keep(self, module);
          },
          py::arg("index"), py::arg("module"))
      .def("__len__", &C::size)
      .def("__getitem__", &C::At)
      .def("__iter__", [](const C& c) {
        py::list modules;
        for (size_t i = 0; i < c.size(); ++i) modules.append(c.Get(i));
        return py::iter(modules);
      });
}

void BindDict(py::module_& m) {
  py::class_<ModuleDict, nn::Module> dict(m, "ModuleDict", py::is_final());
  dict.def(
          "__init__",
          [](py::detail::value_and_holder& self, const py::dict& modules) {
            Construct<ModuleDict>(self, [&modules](ModuleDict& made, py::handle object) {
              AddItems(made, object, modules);
            });
          },
          py::detail::is_new_style_constructor(), py::arg("modules") = py::dict())
      .def("__len__", &ModuleDict::size)
      .def("__iter__", [](const ModuleDict& d) { return py::iter(d.Keys()); })
      .def("__contains__",
           [](const ModuleDict& d, const std::string& key) { return !d.Find(key).is_none(); })
      .def("__getitem__",
           [](const ModuleDict& d, const std::string& key) {
             py::object found = d.Find(key);
             if (found.is_none()) throw py::key_error("ModuleDict: no module \"" + key + "\"");
             return found;
           })
      .def("__setitem__",
           [](const py::object& self, const std::string& key, const py::object& module) {
             py::cast<ModuleDict&>(self).Add(key, module);
             Keep(self, module);
           })
      .def(
          "update",
          [](const py::object& self, const py::dict& modules) {
            AddItems(py::cast<ModuleDict&>(self), self, modules);
          },
          py::arg("modules"))
      .def("keys", &ModuleDict::Keys)
      .def("values",
           [](const ModuleDict& d) {
             py::list values;
             for (size_t i = 0; i < d.size(); ++i) values.append(d.Get(i));
             return values;
           })
      .def("items", [](const ModuleDict& d) {
        py::list items;
        for (size_t i = 0; i < d.size(); ++i) {
          items.append(py::make_tuple(Text(d.children()[i].first), d.Get(i)));
        }
        return items;
      });
}

}  // namespace

void BindContainers(py::module_& m) {
  py::class_<Sequential, nn::Module> sequential(m, "Sequential", py::is_final());
  sequential
      .def(
          "__init__",
          [](py::detail::value_and_holder& self, const py::args& modules) {
            Construct<Sequential>(self, [&modules](Sequential& made, py::handle object) {
              AppendAll(made, object, modules);
            });
          },
          py::detail::is_new_style_constructor())
      .def("forward", &Sequential::Forward, py::arg("x"));
  BindList(sequential);

  py::class_<ModuleList, nn::Module> list(m, "ModuleList", py::is_final());
  list.def(
      "__init__",
      [](py::detail::value_and_holder& self, const py::iterable& modules) {
        Construct<ModuleList>(self, [&modules](ModuleList& made, py::handle object) {
          AppendAll(made, object, modules);
        });
      },
      py::detail::is_new_style_constructor(), py::arg("modules") = py::tuple());
  BindList(list);
  BindDict(m);
}

}  // namespace halftone::python
