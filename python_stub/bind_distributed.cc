#include <pybind11/stl.h>

#include <cstring>
#include <optional>

#include "halftone/distributed/distributed.h"
#include "halftone/distributed/sampler.h"
#include "halftone/python_stub/arrays.h"
#include "halftone/python_stub/bind.h"
#include "halftone/python_stub/interpreter_lock.h"

namespace halftone::python {
namespace {

using distributed::Sampler;
using distributed::Tail;

Tail ToTail(const std::string& name) {
  if (name == "drop") return Tail::kDrop;
  if (name == "pad") return Tail::kPad;
  if (name == "shorten") return Tail::kShorten;
  Check(InvalidArgument("Sampler: tail is \"", name, "\"; expected drop, pad or shorten"));
  return Tail::kDrop;
}

Sampler MakeSampler(int64_t count, int64_t batch, bool shuffle, uint64_t seed,
                    const std::string& tail, std::optional<int> rank, std::optional<int> ranks) {
  return Unwrap(Sampler::Make(count, {.batch = batch,
                                      .shuffle = shuffle,
                                      .seed = seed,
                                      .tail = ToTail(tail),
                                      .rank = rank.value_or(-1),
                                      .ranks = ranks.value_or(-1)}));
}

py::array BatchOf(Sampler& sampler, int64_t step) {
  if (step < 0 || step >= sampler.steps()) {
    throw py::index_error(Concat("step ", step, " of an epoch of ", sampler.steps()));
  }
  const absl::Span<const int64_t> batch = sampler.Batch(step);
  // By way of a tensor: the strides that pybind11 2.10 makes up itself are 0 beside NumPy 2.
  Tensor indices = Tensor::Empty(DType::kI64, {static_cast<int64_t>(batch.size())});
  std::memcpy(indices.raw(), batch.data(), batch.size() * sizeof(int64_t));
  return ToArray(indices);
}

}  // namespace

void BindDistributed(py::module_ m) {
  m.def(
      "init",
      [](double timeout_seconds) {
        Check(WithoutInterpreterLock(
            [&] { return distributed::Init({.timeout_seconds = timeout_seconds}); }));
      },
      py::kw_only(), py::arg("timeout_seconds") = distributed::InitOptions().timeout_seconds,
      "Joins the job that mpirun or Slurm has started this process in");
  m.def("is_initialized", &distributed::IsInitialized);
  m.def("rank", &distributed::Rank);
  m.def("size", &distributed::Size);
  m.def("local_rank", &distributed::LocalRank);
  m.def(
      "sum",
      [](double own) {
        return Unwrap(WithoutInterpreterLock([&] { return distributed::Sum(own); }));
      },
      py::arg("own"), "The sum of a number over the ranks, the same on all");
  m.def("barrier", [] { Check(WithoutInterpreterLock([] { return distributed::Barrier(); })); });
  py::class_<Sampler>(m, "Sampler", py::is_final(),
                      "Which samples of a data set this rank takes in each step of an epoch")
      .def(py::init(&MakeSampler), py::arg("count"), py::arg("batch") = 1, py::kw_only(),
           py::arg("shuffle") = true, py::arg("seed") = 0, py::arg("tail") = "drop",
           py::arg("rank") = py::none(), py::arg("ranks") = py::none())
      .def("set_epoch", &Sampler::SetEpoch, py::arg("epoch"))
      .def("__len__", &Sampler::steps)
      .def("__getitem__", &BatchOf, py::arg("step"))
      .def("__iter__", [](const py::object& self) {
        return py::reinterpret_steal<py::iterator>(PySeqIter_New(self.ptr()));
      });
}

}  // namespace halftone::python
