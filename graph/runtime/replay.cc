#include "halftone/graph/runtime/replay.h"

#include <cstring>
#include <memory>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/runtime/executable.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/group_updates.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::runtime {
namespace {

// The graph without what writes: commits, joined updates and copies beside parameters.
absl::StatusOr<std::unique_ptr<ir::Graph>> WithoutWrites(const ir::Graph& lowered,
                                                         const ReplayOptions& options) {
  std::unique_ptr<ir::Graph> graph = lowered.Clone();
  graph->Remove(graph->commits());
  graph->outputs().clear();
  for (ir::Node* node : passes::Snapshot(*graph)) {
    if (!passes::IsUpdate(*node)) continue;
    node->mutable_attrs().Set("group", int64_t{0});
    node->mutable_attrs().Set("low", DType::kF32);
  }
  ir::Builder builder(graph.get());
  for (const auto& [name, value] : options.scalars) {
    const ir::Node* variable = graph->FindVariableNode(name);
    if (variable == nullptr) continue;
    const ir::ValueType& type = variable->output_type();
    const ir::Expr constant = builder.Constant(Tensor::Full(type.dtype, type.shape, value));
    HT_RETURN_IF_ERROR(builder.status());
    graph->ReplaceUses(variable->output(), constant.value());
  }
  HT_RETURN_IF_ERROR(graph->Sort());
  return graph;
}

absl::StatusOr<Tensor> ValueOf(const VariableStore& store, const ir::Node& node) {
  const auto storage = store.Find(node.attrs().GetString("name"));
  HT_RETURN_IF_ERROR(storage->FetchToHost());
  return storage->value();
}

// Of values that no kernel of the step writes: what it is given, and what stands for other values.
absl::Status AddOthers(const ir::Graph& graph, const VariableStore& store,
                       absl::Span<const void* const> inputs, SeenRanges& ranges) {
  size_t input = 0;
  for (const auto& node : graph.nodes()) {
    const bool is_input = passes::IsOp(*node, "input");
    const void* const data = is_input ? inputs[input++] : nullptr;
    if (node->num_outputs() == 0 || !IsFloat(node->output_type().dtype)) continue;
    const auto [at, is_new] = ranges.try_emplace({node->id(), 0});
    if (!is_new) continue;
    amp::Range& range = at->second;
    if (is_input) {
      const ir::ValueType& type = node->output_type();
      HT_ASSIGN_OR_RETURN(const Tensor tensor, Tensor::Allocate(type.dtype, type.shape));
      if (tensor.num_bytes() > 0) std::memcpy(tensor.raw(), data, tensor.num_bytes());
      range.Add(tensor);
    } else if (passes::IsOp(*node, "variable")) {
      HT_ASSIGN_OR_RETURN(const Tensor tensor, ValueOf(store, *node));
      range.Add(tensor);
    } else if (const Tensor* constant = passes::ConstantValue(node->output())) {
      range.Add(*constant);
    } else if (passes::IsKeptCast(*node)) {
      HT_ASSIGN_OR_RETURN(const Tensor tensor, ValueOf(store, *node->input(0).node));
      HT_ASSIGN_OR_RETURN(const Tensor low, tensor.Convert(node->output_type().dtype));
      range.Add(low);
    } else if (passes::IsStorageAlias(*node)) {
      range = ranges[{node->input(0).node->id(), node->input(0).index}];
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<SeenRanges> Replay(const ir::Graph& lowered, const ReplayOptions& options,
                                  VariableStore& store, absl::Span<const void* const> inputs) {
  HT_ASSIGN_OR_RETURN(std::unique_ptr<ir::Graph> graph, WithoutWrites(lowered, options));
  HT_ASSIGN_OR_RETURN(const std::unique_ptr<Executable> executable,
                      Executable::Create(std::move(graph), options.device, options.seed, store,
                                         std::make_shared<Arena>()));
  SeenRanges ranges;
  executable->set_watch([&ranges](ir::Value value, const Tensor& tensor) {
    if (IsFloat(tensor.dtype())) ranges[{value.node->id(), value.index}].Add(tensor);
    return absl::OkStatus();
  });
  HT_RETURN_IF_ERROR(executable->Run(inputs.data(), nullptr, options.run_count));
  HT_RETURN_IF_ERROR(AddOthers(executable->graph(), store, inputs, ranges));
  return ranges;
}

}  // namespace halftone::runtime
