#include "halftone/passes/autodiff/sync_batch_norms.h"

#include <utility>
#include <vector>

#include "halftone/graph/ops/support/expr.h"
#include "halftone/passes/rewrite/replacements.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

constexpr char kSyncBatchNormsPass[] = "sync-batch-norms";

using ir::Expr;
using Ints = std::vector<int64_t>;

class Synced {
 public:
  Synced(const ir::Node& node, int64_t ranks, Replacements& replacements)
      : node_(node),
        ranks_(ranks),
        replacements_(replacements),
        b_(BuilderLike(node, kSyncBatchNormsPass)) {}

  absl::Status Make() {
    const Expr x = Operand(0);
    const Expr wide = b_.Cast(x, node_.input_type(1).dtype);
    const Expr own = Mean(wide);
    const Expr centred = wide - PerChannel(own);
    const Expr own_var = Mean(centred * centred);
    b_.NameNext(node_.name() + "_mean");
    const Expr mean = OverRanks(own);
    const Expr apart = own - mean;
    const Expr spread = own_var + apart * apart;
    b_.NameNext(node_.name() + "_var");
    const Expr var = OverRanks(spread);
    const double eps = node_.attrs().GetFloat("eps"), m = node_.attrs().GetFloat("momentum");
    b_.NameNext(node_.name());
    const Expr y =
        b_.Op("batch_norm_inference", {x, Operand(1), Operand(2), mean, var}, {{"eps", eps}});
    const ir::ValueType& type = node_.input_type(0);
    const double n = static_cast<double>(type.num_elements()) / static_cast<double>(type.shape[1]) *
                     static_cast<double>(ranks_);
    const Expr invstd = 1.0 / ops::Sqrt(var + eps);
    const Expr new_mean = Operand(3) * (1 - m) + mean * m;
    const Expr new_var = Operand(4) * (1 - m) + var * (m * n / (n > 1 ? n - 1 : 1));
    HT_RETURN_IF_ERROR(b_.status());
    const Expr results[] = {y, mean, invstd, new_mean, new_var};
    for (int i = 0; i < node_.num_outputs(); ++i) {
      replacements_.Replace(node_.output(i), results[i].value());
    }
    return absl::OkStatus();
  }

 private:
  Expr Operand(int port) { return b_.Wrap(replacements_.Current(node_.input(port))); }

  // Per channel, over all other axes.
  Expr Mean(Expr x) {
    Ints axes;
    for (int axis = 0; axis < x.shape().rank(); ++axis) {
      if (axis != 1) axes.push_back(axis);
    }
    return b_.Op("mean", {x}, {{"axes", axes}});
  }

  Expr PerChannel(Expr number) {
    Ints extents(static_cast<size_t>(node_.input_type(0).shape.rank()), 1);
    extents[1] = number.shape()[0];
    return b_.Op("reshape", {number}, {{"shape", extents}});
  }

  Expr OverRanks(Expr own) {
    return b_.Op("all_reduce", {own}, {{"ranks", ranks_}, {"reduction", std::string("mean")}});
  }

  const ir::Node& node_;
  const int64_t ranks_;
  Replacements& replacements_;
  ir::Builder b_;
};

class SyncBatchNorms : public Pass {
 public:
  const char* name() const override { return kSyncBatchNormsPass; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const ir::Node* const marker = FindMarker(graph, "data_parallel");
    if (marker == nullptr || !marker->attrs().GetBool("sync_batch_norm")) return false;
    const int64_t ranks = marker->attrs().GetInt("ranks");
    if (ranks == 1) return false;
    std::vector<ir::Node*> gone;
    Replacements replacements;
    for (ir::Node* node : Snapshot(graph)) {
      if (!IsOp(*node, "batch_norm") || !IsOp(*node->input(3).node, "variable")) continue;
      HT_RETURN_IF_ERROR(Synced(*node, ranks, replacements).Make());
      gone.push_back(node);
      ++context.stats["synced"];
    }
    replacements.Finish(graph);
    graph.Remove(gone);
    HT_RETURN_IF_ERROR(graph.Sort());
    return !gone.empty();
  }
};

}  // namespace

std::unique_ptr<Pass> MakeSyncBatchNorms() { return std::make_unique<SyncBatchNorms>(); }

}  // namespace halftone::passes
