#include "halftone/tools/support/memory_report.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "halftone/graph/ops/support/record.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/memory/keep_low_weights.h"
#include "halftone/passes/memory/memory_plan.h"
#include "halftone/passes/memory/recomputation.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::tools {
namespace {

using passes::Slot;

// A value of the arena: the bytes that it and the reshapes of it share.
struct Buffer {
  ir::Value value;
  int64_t bytes = 0;
  int first = 0;  // position of the node that writes it
  int last = 0;   // of its last reader; the number of nodes: held to the end
  bool in_arena = true;
  bool takes_over = false;  // the bytes of an operand
  bool taken_over = false;  // by a result of the last reader
  int64_t offset = 0;       // in the plan

  bool HoldsAt(int position) const { return first <= position && position <= last - taken_over; }
};

// Whether a kernel runs for the node.
bool Runs(const ir::Node& node) {
  return !passes::IsSource(node) && !passes::IsOp(node, "commit") &&
         !passes::IsStorageAlias(node) && !passes::IsKeptCast(node);
}

class Accountant {
 public:
  explicit Accountant(const ir::Graph& graph)
      : graph_(graph), end_(static_cast<int>(graph.nodes().size())) {}

  MemoryReport Run() {
    report_.graph = graph_.name();
    report_.planned = std::none_of(graph_.nodes().begin(), graph_.nodes().end(),
                                   [](const auto& node) { return node->op().is_marker; });
    CreateBuffers();
    FindLastReaders();
    if (report_.planned) {
      FollowPlan(passes::PlanMemory(graph_));
    } else {
      for (const ir::Output& output : graph_.outputs()) BufferOf(output.value).in_arena = false;
    }
    Play();
    FindHolders();
    SumUpOutside();
    return std::move(report_);
  }

 private:
  Buffer& BufferOf(ir::Value v) { return buffers_[buffer_of_.at({v.node->id(), v.index})]; }

  void CreateBuffers() {
    for (int p = 0; p < end_; ++p) {
      const ir::Node& node = *graph_.nodes()[p];
      for (int i = 0; i < node.num_outputs(); ++i) {
        const ir::Value value = node.output(i);
        if (passes::IsStorageAlias(node)) {
          const ir::Value operand = node.input(0);
          buffer_of_[{node.id(), i}] = buffer_of_.at({operand.node->id(), operand.index});
          continue;
        }
        buffer_of_[{node.id(), i}] = buffers_.size();
        buffers_.push_back({value, value.type().num_bytes(), p, p, !passes::IsSource(node)});
      }
    }
  }

  void FindLastReaders() {
    for (int p = 0; p < end_; ++p) {
      const ir::Node& node = *graph_.nodes()[p];
      if (passes::IsStorageAlias(node)) continue;  // its readers count
      const int when = passes::IsOp(node, "commit") ? end_ : p;
      for (const ir::Value& v : node.inputs()) {
        Buffer& buffer = BufferOf(v);
        buffer.last = std::max(buffer.last, when);
      }
    }
    for (const ir::Output& output : graph_.outputs()) BufferOf(output.value).last = end_;
  }

  void FollowPlan(const passes::MemoryPlan& plan) {
    report_.arena_bytes = plan.arena_bytes;
    for (Buffer& buffer : buffers_) {
      const Slot& slot = plan.nodes[buffer.first].outputs[buffer.value.index];
      buffer.in_arena = buffer.in_arena && slot.space == Slot::Space::kArena;
      buffer.offset = slot.offset;
    }
    // Two buffers at one place, the second written by the last reader of the first: taken over.
    std::map<int64_t, Buffer*> at;  // by offset
    for (Buffer& buffer : buffers_) {
      if (!buffer.in_arena || buffer.bytes == 0) continue;
      Buffer*& before = at[buffer.offset];
      if (before != nullptr && before->last == buffer.first && before->bytes == buffer.bytes) {
        before->taken_over = buffer.takes_over = true;
      }
      before = &buffer;
    }
  }

  void Play() {
    std::vector<int64_t> adds(end_ + 1), frees(end_ + 1);
    for (const Buffer& buffer : buffers_) {
      if (!buffer.in_arena) continue;
      if (!buffer.takes_over) adds[buffer.first] += buffer.bytes;
      if (!buffer.taken_over) frees[buffer.last] += buffer.bytes;
    }
    int64_t live = 0;
    for (int p = 0; p < end_; ++p) {
      const ir::Node& node = *graph_.nodes()[p];
      live += adds[p];
      if (Runs(node)) {
        report_.steps.push_back({&node, adds[p], frees[p], live});
        if (report_.peak < 0 || live > report_.peak_bytes()) {
          report_.peak = static_cast<int>(report_.steps.size()) - 1;
          peak_position_ = p;
        }
      }
      live -= frees[p];
    }
  }

  void FindHolders() {
    for (const Buffer& buffer : buffers_) {
      if (!buffer.in_arena || buffer.bytes == 0 || !buffer.HoldsAt(peak_position_)) continue;
      const ir::Node* reader = buffer.last < end_ ? graph_.nodes()[buffer.last].get() : nullptr;
      report_.held_at_peak.push_back({buffer.value, buffer.bytes, reader});
    }
    std::stable_sort(report_.held_at_peak.begin(), report_.held_at_peak.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  }

  void SumUpOutside() {
    std::set<std::pair<std::string, const ir::Node*>> packed;  // readers of one weight share
    for (const auto& node : graph_.nodes()) {
      if (ops::IsPacked(*node) && packed.insert({node->op().name, node->input(1).node}).second) {
        report_.packed_bytes += node->input_type(1).num_bytes();
      }
      if (passes::IsKeptCast(*node)) report_.kept_bytes += node->output_type().num_bytes();
      if (!passes::IsSource(*node) || passes::IsOp(*node, "variable")) continue;
      const int64_t bytes = node->output_type().num_bytes();
      (passes::IsOp(*node, "input") ? report_.input_bytes : report_.constant_bytes) += bytes;
    }
    for (const ir::Variable& variable : graph_.variables()) {
      report_.variable_bytes += variable.type.num_bytes();
    }
    for (const ir::Output& output : graph_.outputs()) {
      report_.output_bytes += output.value.type().num_bytes();
    }
  }

  const ir::Graph& graph_;
  const int end_;
  std::vector<Buffer> buffers_;
  std::map<std::pair<int64_t, int>, size_t> buffer_of_;
  int peak_position_ = -1;
  MemoryReport report_;
};

}  // namespace

MemoryReport MakeMemoryReport(const ir::Graph& graph) {
  MemoryReport report = Accountant(graph).Run();
  report.repeats =
      static_cast<int>(std::count_if(graph.nodes().begin(), graph.nodes().end(),
                                     [](const auto& node) { return passes::IsRecomputed(*node); }));
  if (report.repeats == 0) return report;
  const absl::StatusOr<std::unique_ptr<ir::Graph>> once = passes::WithoutRepeats(graph);
  HT_CHECK(once.ok(), "a sorted graph has no cycle");
  const MemoryReport without = Accountant(**once).Run();
  report.arena_bytes_without = without.arena_bytes;
  report.peak_bytes_without = without.peak_bytes();
  return report;
}

}  // namespace halftone::tools
