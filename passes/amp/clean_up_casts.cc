#include "halftone/passes/amp/clean_up_casts.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "halftone/graph/ir/infer.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

// An op that can leave its result in f32 and still leaves it in 16 bit.
bool CanWriteF32(const ir::Node& node) {
  if (node.attrs().Has("low_result") && node.attrs().GetBool("low_result")) return false;
  const auto& attrs = node.op().attrs;
  const bool has_out = std::any_of(attrs.begin(), attrs.end(), [](const ir::AttrSpec& spec) {
    return spec.name == "out" && spec.type == ir::AttrType::kString;
  });
  return has_out && IsLow(node.output_type().dtype) && node.attrs().GetString("out").empty();
}

// Ops that read a 16-bit value where they read its cast to f32, see ir::AmpTrait::widens_inputs.
class WidenedReads {
 public:
  WidenedReads(ir::Graph& graph, const ir::Target& target)
      : graph_(graph), target_(target), uses_(graph) {}

  // The number of casts that are gone.
  absl::StatusOr<int64_t> Run() {
    for (ir::Node* node : Snapshot(graph_)) {
      replacements_.Update(*node);
      if (gone_.count(node) == 0 && MayGo(*node)) HT_RETURN_IF_ERROR(ReadSourceOf(*node));
    }
    replacements_.Finish(graph_);
    graph_.Remove({gone_.begin(), gone_.end()});
    return static_cast<int64_t>(gone_.size());
  }

 private:
  bool MayGo(const ir::Node& cast) const {
    if (!IsCast(cast) || cast.output_type().dtype != DType::kF32) return false;
    if (!IsLow(cast.input_type(0).dtype) || uses_.is_output(cast.output())) return false;
    const auto& readers = uses_.uses(cast.output());
    return std::all_of(readers.begin(), readers.end(), [&](const ir::UseMap::Use& use) {
      return Contains(use.node->op().amp.widens_inputs, use.port) && CanRead(*use.node, cast);
    });
  }

  bool CanRead(const ir::Node& reader, const ir::Node& cast) const {
    const ir::ValueType& low = cast.input_type(0);
    if (!target_.HasKernel(reader.op().name, low.dtype)) return false;
    std::vector<ir::ValueType> inputs;
    for (const ir::Value& v : reader.inputs()) {
      inputs.push_back(v == cast.output() ? low : v.type());
    }
    const auto types = ir::InferTypes(reader.op(), reader.Label(), inputs, reader.attrs());
    if (!types.ok()) return false;  // another operand shares the dtype
    for (int i = 0; i < reader.num_outputs(); ++i) {
      if ((*types)[static_cast<size_t>(i)] == reader.output_type(i)) continue;
      if (!IsReadAs(reader.output(i), low.dtype)) return false;
    }
    return true;
  }

  // Whether all that reads `v` are casts to `low`.
  bool IsReadAs(ir::Value v, DType low) const {
    const auto& readers = uses_.uses(v);
    return !uses_.is_output(v) &&
           std::all_of(readers.begin(), readers.end(), [&](const ir::UseMap::Use& use) {
             return IsCast(*use.node) && use.node->output_type().dtype == low;
           });
  }

  absl::Status ReadSourceOf(ir::Node& cast) {
    for (const ir::UseMap::Use& use : uses_.uses(cast.output())) {
      ir::Node& reader = *use.node;
      const std::vector<ir::ValueType> before = reader.mutable_output_types();
      reader.set_input(use.port, cast.input(0));
      HT_RETURN_IF_ERROR(Reinfer(reader));
      for (int i = 0; i < reader.num_outputs(); ++i) {
        if (reader.output_type(i) == before[static_cast<size_t>(i)]) continue;
        for (const ir::UseMap::Use& read : uses_.uses(reader.output(i))) {
          replacements_.Replace(read.node->output(), reader.output(i));
          gone_.insert(read.node);
        }
      }
    }
    gone_.insert(&cast);
    return absl::OkStatus();
  }

  ir::Graph& graph_;
  const ir::Target& target_;
  const ir::UseMap uses_;
  Replacements replacements_;
  std::set<ir::Node*> gone_;
};

class CleanUpCasts : public Pass {
 public:
  const char* name() const override { return "clean-up-casts"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const int64_t removed = ShortenChains(graph);
    const int64_t merged = MergeEqualCasts(graph);
    HT_ASSIGN_OR_RETURN(const int64_t widened, WidenedReads(graph, *context.target).Run());
    HT_ASSIGN_OR_RETURN(const int64_t absorbed, AbsorbCasts(graph));
    context.stats["removed"] += removed;
    context.stats["merged"] += merged;
    context.stats["widened"] += widened;
    context.stats["absorbed"] += absorbed;
    return removed + merged + widened + absorbed > 0;
  }

 private:
  // In node order, so that an inner cast is as short as it gets before an outer one looks at it.
  static int64_t ShortenChains(ir::Graph& graph) {
    int64_t changes = 0;
    std::vector<ir::Node*> gone;
    Replacements replacements;
    for (ir::Node* node : Snapshot(graph)) {
      if (!IsCast(*node)) continue;
      replacements.Update(*node);
      const ir::Node& inner = *node->input(0).node;
      if (IsCast(inner) && IsLossless(inner.input_type(0).dtype, inner.output_type().dtype)) {
        node->set_input(0, inner.input(0));
        ++changes;
      }
      if (node->input_type(0) == node->output_type()) {
        replacements.Replace(node->output(), node->input(0));
        gone.push_back(node);
        ++changes;
      }
    }
    replacements.Finish(graph);
    graph.Remove(gone);
    return changes + RemoveUnreadCasts(graph);
  }

  static int64_t RemoveUnreadCasts(ir::Graph& graph) {
    const ir::UseMap uses(graph);
    std::vector<ir::Node*> unread;
    for (ir::Node* node : Snapshot(graph)) {
      if (!IsCast(*node) || uses.is_output(node->output())) continue;
      if (uses.uses(node->output()).empty()) unread.push_back(node);
    }
    graph.Remove(unread);
    return static_cast<int64_t>(unread.size());
  }

  static int64_t MergeEqualCasts(ir::Graph& graph) {
    std::map<std::tuple<int64_t, int, DType>, ir::Node*> first;
    std::vector<ir::Node*> merged;
    Replacements replacements;
    for (ir::Node* node : Snapshot(graph)) {
      if (!IsCast(*node)) continue;
      replacements.Update(*node);
      const ir::Value x = node->input(0);
      const auto [it, is_first] =
          first.emplace(std::make_tuple(x.node->id(), x.index, node->output_type().dtype), node);
      if (is_first) continue;
      replacements.Replace(node->output(), it->second->output());
      if (node->provenance.pass.empty()) it->second->provenance = {};
      merged.push_back(node);
    }
    replacements.Finish(graph);
    graph.Remove(merged);
    return static_cast<int64_t>(merged.size());
  }

  static absl::StatusOr<int64_t> AbsorbCasts(ir::Graph& graph) {
    const ir::UseMap uses(graph);
    std::vector<ir::Node*> absorbed;
    Replacements replacements;
    for (ir::Node* node : Snapshot(graph)) {
      replacements.Update(*node);
      if (!IsCast(*node) || node->output_type().dtype != DType::kF32) continue;
      // Only gradients: a value of the forward pass is rounded to 16 bit for all its readers, the
      // f32 ones too, as the user's graph under mixed precision says (case A09).
      if (node->provenance.pass != "autodiff") continue;
      const ir::Value x = node->input(0);
      if (uses.uses(x).size() != 1 || uses.is_output(x) || !CanWriteF32(*x.node)) continue;
      x.node->mutable_attrs().Set("out", std::string("f32"));
      HT_RETURN_IF_ERROR(Reinfer(*x.node));
      replacements.Replace(node->output(), x);
      absorbed.push_back(node);
    }
    replacements.Finish(graph);
    graph.Remove(absorbed);
    return static_cast<int64_t>(absorbed.size());
  }
};

}  // namespace

std::unique_ptr<Pass> MakeCleanUpCasts() { return std::make_unique<CleanUpCasts>(); }

}  // namespace halftone::passes
