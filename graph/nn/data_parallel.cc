#include "halftone/graph/nn/data_parallel.h"

#include <algorithm>
#include <memory>
#include <set>

#include "absl/strings/str_split.h"
#include "halftone/core/philox.h"
#include "halftone/core/version.h"
#include "halftone/distributed/communicator.h"
#include "halftone/distributed/distributed.h"
#include "halftone/graph/nn/compiled_step.h"
#include "halftone/kernels/device_backend.h"

namespace halftone::nn {
namespace {

using distributed::Communicator;

// What is compared, in the order in which it is told: what explains the rest comes first.
struct Property {
  const char* name;
  std::string value;
};

std::string InputsOf(const ir::Graph& graph) {
  std::string text;
  for (const ir::Node* input : graph.inputs()) {
    text += Concat(text.empty() ? "" : " ", input->output_type().ToString());
  }
  return text.empty() ? "none" : text;
}

std::vector<Property> PropertiesOf(const ir::Graph& traced, const StepConfig& config,
                                   const Device& device, uint64_t micro_batches) {
  const DataParallel& options = *config.data_parallel_options();
  const bool sums = options.reduction == DataParallel::Reduction::kSum;
  const Device kind{device.kind, 0};
  return {{"the version of Halftone", std::string(Version())},
          {"the kind of device", device.kind == Device::Kind::kCuda ? "cuda" : kind.ToString()},
          {"the name of the graph", traced.name()},
          {"data_parallel.bucket_bytes", Concat(options.bucket_bytes)},
          {"data_parallel.reduction", sums ? "sum" : "mean"},
          {"data_parallel.wire_dtype", Name(options.wire_dtype)},
          {"data_parallel.sync_batch_norm", options.sync_batch_norm ? "true" : "false"},
          {"data_parallel.shard_optimizer", options.shard_optimizer ? "true" : "false"},
          {"set_gradient_accumulation_steps", Concat(config.gradient_accumulation_steps())},
          {"accumulate_calls", Concat(config.accumulated_calls())},
          {"accumulated_micro_batches()", Concat(micro_batches)},
          {"config.seed", Concat(config.seed)},
          {"the inputs", InputsOf(traced)}};
}

// Gives all the bytes of rank 0.
absl::Status BroadcastText(std::string& text) {
  Communicator& world = distributed::World();
  uint64_t bytes = text.size();
  HT_RETURN_IF_ERROR(world.Broadcast(&bytes, sizeof(bytes), 0));
  text.resize(bytes);
  return world.Broadcast(text.data(), text.size(), 0);
}

// The first lines in which two texts differ; empty where one has ended.
std::pair<std::string, std::string> FirstDifference(const std::string& own,
                                                    const std::string& other) {
  const std::vector<std::string> mine = absl::StrSplit(own, '\n');
  const std::vector<std::string> theirs = absl::StrSplit(other, '\n');
  for (size_t i = 0; i < std::max(mine.size(), theirs.size()); ++i) {
    std::string a = i < mine.size() ? mine[i] : "", b = i < theirs.size() ? theirs[i] : "";
    if (a != b) return {std::move(a), std::move(b)};
  }
  return {};
}

// Of every rank, in what its graph differs from rank 0's. All ranks call it.
absl::StatusOr<std::vector<std::string>> FirstDifferences(const ir::Graph& traced) {
  const std::string own = TextOf(traced);
  std::string first = own;
  HT_RETURN_IF_ERROR(BroadcastText(first));
  const auto [here, there] = FirstDifference(own, first);
  const std::string difference =
      here == there ? "its graph has another constant than that of rank 0"
                    : Concat("its graph has \"", here, "\", that of rank 0 \"", there, "\"");
  return distributed::World().Exchange(difference, "comparing graphs");
}

// Of variables that a step of any rank has: one that updates no parameter of a group reads no learning
// rate for it. All ranks call it.
absl::StatusOr<std::set<std::string>> NamesOfAll(const std::vector<ir::Variable>& variables) {
  std::string own;
  for (const ir::Variable& variable : variables) own += variable.name + "\n";
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      distributed::World().Exchange(own, "comparing variables"));
  std::set<std::string> names;
  for (const std::string& text : all) {
    for (const auto name : absl::StrSplit(text, '\n', absl::SkipEmpty())) names.emplace(name);
  }
  return names;
}

absl::Status Differs(int rank, const std::string& graph, const std::string& in_what) {
  return FailedPrecondition("rank ", rank, ": graph @", graph, ": ", in_what,
                            "; expected the same program on all ranks");
}

}  // namespace

bool IsDataParallel(const StepConfig& config) {
  return config.data_parallel_options().has_value() && distributed::Size() > 1;
}

bool ShardsState(const StepConfig& config) {
  return IsDataParallel(config) && config.data_parallel_options()->shard_optimizer;
}

absl::Status AgreeOn(const StepConfig& config, const absl::Status& status, const char* what) {
  return IsDataParallel(config) ? distributed::World().Agree(status, what) : status;
}

absl::Status CompareTraces(const ir::Graph& traced, const StepConfig& config, const Device& device,
                           uint64_t micro_batches) {
  Communicator& world = distributed::World();
  for (const Property& property : PropertiesOf(traced, config, device, micro_batches)) {
    HT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                        world.Exchange(property.value, "comparing steps"));
    for (int r = 1; r < world.size(); ++r) {
      const std::string& value = all[static_cast<size_t>(r)];
      if (value == all[0]) continue;
      return Differs(r, traced.name(), Concat(property.name, ": ", value, ", of rank 0 ", all[0]));
    }
  }
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> hashes,
                      world.Exchange(Concat(traced.Hash()), "comparing graphs"));
  if (std::all_of(hashes.begin(), hashes.end(), [&](const auto& h) { return h == hashes[0]; })) {
    return absl::OkStatus();
  }
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> differences, FirstDifferences(traced));
  for (int r = 1; r < world.size(); ++r) {
    const auto i = static_cast<size_t>(r);
    if (hashes[i] != hashes[0]) return Differs(r, traced.name(), differences[i]);
  }
  return absl::OkStatus();
}

absl::Status JoinOnDevice(const Device& device) {
  if (device.kind != Device::Kind::kCuda) return absl::OkStatus();
  Communicator& world = distributed::World();
  const absl::StatusOr<kernels::DeviceBackend*> backend = kernels::OpenCuda(device.index);
  HT_RETURN_IF_ERROR(world.Agree(backend.status(), "opening the device"));
  return (*backend)->Join(world);
}

std::string ExchangesOf(const ir::Graph& lowered) {
  std::string text;
  for (const auto& node : lowered.nodes()) {
    if (!node->op().communicates) continue;
    text += node->op().name + " " + node->name();
    if (node->attrs().Has("rank")) {
      // What ranks give and get differs; what they say that all have does not.
      for (const std::string& shape : node->attrs().Get<std::vector<std::string>>("shapes")) {
        text += " " + shape;
      }
      for (const int64_t owner : node->attrs().GetInts("owners")) text += Concat(" ", owner);
    } else {
      for (const ir::Value& input : node->inputs()) text += " " + input.type().ToString();
    }
    text += "\n";
  }
  return text;
}

absl::Status CompareExchanges(const std::string& own, const std::string& graph) {
  Communicator& world = distributed::World();
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> all,
                      world.Exchange(own, "comparing exchanges"));
  for (int r = 1; r < world.size(); ++r) {
    if (all[static_cast<size_t>(r)] == all[0]) continue;
    const auto [here, there] = FirstDifference(all[static_cast<size_t>(r)], all[0]);
    return Differs(r, graph,
                   Concat("its step was compiled to other exchanges than that of rank 0: \"", here,
                          "\", there \"", there, "\""));
  }
  return absl::OkStatus();
}

void MakeOwn(ir::Graph& traced) {
  const int rank = distributed::Rank();
  for (const auto& node : traced.nodes()) {
    if (node->op().name != "data_parallel" || !node->attrs().GetBool("shard_optimizer")) continue;
    node->mutable_attrs().Set("rank", int64_t{rank});
  }
  if (rank == 0) return;
  const std::string label = Concat("rank ", rank);
  const uint64_t mixed = HashName(label.data(), label.size());
  for (const auto& node : traced.nodes()) {
    if (!node->op().is_random || !node->attrs().Has("seed")) continue;
    const auto seed = static_cast<uint64_t>(node->attrs().GetInt("seed"));
    // Attributes are signed; one bit less of seed costs nothing.
    node->mutable_attrs().Set("seed", static_cast<int64_t>((seed ^ mixed) >> 1));
  }
}

absl::Status TakeStateOfFirst(const std::vector<ir::Variable>& variables,
                              const runtime::VariableStore& store, RunCounts& counts) {
  Communicator& world = distributed::World();
  HT_ASSIGN_OR_RETURN(const std::set<std::string> names, NamesOfAll(variables));
  std::set<const runtime::VariableStorage*> done;
  for (const std::string& name : names) {
    const std::shared_ptr<runtime::VariableStorage> storage = store.Find(name);
    uint64_t bytes = 0;
    const bool is_new = storage == nullptr || done.insert(storage.get()).second;
    if (is_new && storage != nullptr && storage->materialised()) {
      HT_RETURN_IF_ERROR(storage->FetchToHost());
      bytes = storage->value().num_bytes();
    }
    HT_RETURN_IF_ERROR(world.Broadcast(&bytes, sizeof(bytes), /*root=*/0));
    if (bytes == 0) continue;
    if (storage == nullptr) {
      std::string unread(bytes, '\0');
      HT_RETURN_IF_ERROR(world.Broadcast(unread.data(), bytes, /*root=*/0));
    } else if (storage->materialised()) {
      HT_RETURN_IF_ERROR(world.Broadcast(storage->host_data(), bytes, /*root=*/0));
      storage->HostWrote();
    } else {
      HT_ASSIGN_OR_RETURN(const Tensor value, Tensor::Allocate(storage->dtype(), storage->shape()));
      HT_RETURN_IF_ERROR(world.Broadcast(value.raw(), bytes, /*root=*/0));
      HT_RETURN_IF_ERROR(storage->Assign(value));
    }
  }
  for (uint64_t* count : {&counts.training, &counts.micro_batches}) {
    HT_RETURN_IF_ERROR(world.Broadcast(count, sizeof(*count), /*root=*/0));
  }
  return absl::OkStatus();
}

}  // namespace halftone::nn
