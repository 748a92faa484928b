#include "halftone/graph/nn/window_sums.h"

#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "halftone/distributed/communicator.h"
#include "halftone/distributed/distributed.h"
#include "halftone/graph/nn/data_parallel.h"
#include "halftone/optim/update_rule.h"

namespace halftone::nn {
namespace {

using distributed::Communicator;

bool AddsRanks(const StepConfig& config) {
  return config.data_parallel_options()->reduction == DataParallel::Reduction::kSum;
}

// [ranks] + the extents of one rank's.
ir::ValueType OfAllRanks(const ir::ValueType& own, int64_t ranks) {
  std::vector<int64_t> dims = {ranks};
  dims.insert(dims.end(), own.shape.dims().begin(), own.shape.dims().end());
  return {own.dtype, Shape(dims)};
}

// How many ranks' values of type `own` a tensor has; 0: it is none of GatherWindow.
int64_t RanksIn(const Tensor& value, const ir::ValueType& own) {
  if (!value.defined() || value.shape().rank() != own.shape.rank() + 1) return 0;
  const ir::ValueType expected = OfAllRanks(own, value.shape()[0]);
  return value.dtype() == expected.dtype && value.shape() == expected.shape ? value.shape()[0] : 0;
}

char* PartOf(const Tensor& all, int64_t ranks, int64_t rank) {
  const size_t bytes = all.num_bytes() / static_cast<size_t>(ranks);
  return static_cast<char*>(all.raw()) + bytes * static_cast<size_t>(rank);
}

// A flag: whether all ranks' gradients were finite. A sum: that of all ranks' by `factor`, added in their order.
Tensor Together(const Tensor& all, const ir::ValueType& own, int64_t ranks, double factor) {
  Tensor one = Tensor::Empty(own.dtype, own.shape);
  const int64_t elements = one.num_elements();
  for (int64_t i = 0; i < elements; ++i) {
    double sum = 0;
    for (int64_t r = 0; r < ranks; ++r) sum += all.at(r * elements + i);
    const bool is_flag = own.dtype == DType::kBool;
    one.set(i, is_flag ? (sum == static_cast<double>(ranks) ? 1 : 0) : sum * factor);
  }
  return one;
}

}  // namespace

std::map<std::string, ir::ValueType> WindowState(const Declaration& declared) {
  std::map<std::string, ir::ValueType> types = OwnWindowState(declared);
  if (!declared.optimizers().empty()) types[optim::kMicroBatchesVariable] = {DType::kI64, Shape{}};
  return types;
}

std::map<std::string, ir::ValueType> OwnWindowState(const Declaration& declared) {
  std::map<std::string, ir::ValueType> types;
  if (declared.optimizers().empty()) return types;
  for (const OptimizerEntry& entry : declared.optimizers()) {
    for (const std::string& parameter : entry.parameter_names) {
      const std::shared_ptr<runtime::VariableStorage> storage = declared.store().Find(parameter);
      types[optim::SlotVariable(entry.name, parameter, optim::kGradSumSlot)] =
          optim::GradSumType({storage->dtype(), storage->shape()});
    }
  }
  for (const ScalerEntry& entry : declared.scalers()) {
    types[optim::WindowFiniteVariable(entry.name)] = {DType::kBool, Shape{}};
  }
  return types;
}

absl::Status GatherWindow(const Declaration& declared, const StepConfig& config,
                          runtime::StateDict& state) {
  Communicator& world = distributed::World();
  const std::map<std::string, ir::ValueType> types = OwnWindowState(declared);
  std::string names;
  for (const auto& [name, type] : types) names += state.contains(name) ? name + "\n" : "";
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all_names,
                      world.Exchange(names, "gathering sums of gradients"));
  for (int r = 1; r < world.size(); ++r) {
    if (all_names[static_cast<size_t>(r)] == all_names[0]) continue;
    return FailedPrecondition(
        "rank ", r, ": graph @", declared.name(),
        ": sums gradients of other parameters than rank 0; expected the same");
  }
  for (const auto& [name, type] : types) {
    const auto own = state.find(name);
    if (own == state.end()) continue;
    const size_t bytes = own->second.num_bytes();
    Tensor all;
    if (world.rank() == 0) {
      const ir::ValueType of_all = OfAllRanks(type, world.size());
      HT_ASSIGN_OR_RETURN(all, Tensor::Allocate(of_all.dtype, of_all.shape));
      std::memcpy(all.raw(), own->second.raw(), bytes);
    }
    for (int r = 1; r < world.size(); ++r) {
      void* const data = world.rank() == 0   ? PartOf(all, world.size(), r)
                         : world.rank() == r ? own->second.raw()
                                             : nullptr;
      HT_RETURN_IF_ERROR(world.Send(data, bytes, r, 0));
    }
    if (world.rank() == 0) own->second = std::move(all);
  }
  if (AddsRanks(config)) state[optim::kRanksAreAddedVariable] = Tensor::Scalar(DType::kBool, 1);
  return absl::OkStatus();
}

void TakeOwnWindow(const Declaration& declared, const StepConfig& config,
                   runtime::StateDict& state) {
  const bool together = IsDataParallel(config);
  const int64_t ranks = together ? distributed::Size() : 1;
  const int64_t rank = together ? distributed::Rank() : 0;
  const bool were_added = state.erase(optim::kRanksAreAddedVariable) > 0;
  for (const auto& [name, type] : OwnWindowState(declared)) {
    const auto found = state.find(name);
    const int64_t written = found == state.end() ? 0 : RanksIn(found->second, type);
    if (written == 0) continue;
    const Tensor all = found->second;
    if (written == ranks) {
      Tensor own = Tensor::Empty(type.dtype, type.shape);
      std::memcpy(own.raw(), PartOf(all, ranks, rank), own.num_bytes());
      found->second = std::move(own);
    } else {
      // The same on all ranks, so that what the update makes of them is what it was to make.
      const double factor = (were_added ? 1.0 : 1.0 / static_cast<double>(written)) /
                            (together && AddsRanks(config) ? static_cast<double>(ranks) : 1.0);
      found->second = Together(all, type, written, factor);
    }
  }
}

}  // namespace halftone::nn
