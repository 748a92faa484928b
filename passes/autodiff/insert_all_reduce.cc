#include "halftone/passes/autodiff/insert_all_reduce.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

constexpr char kInsertAllReducePass[] = "insert-all-reduce";

using ir::Expr;

using Names = std::vector<std::string>;

// What an optimizer reads, and the rank that it is for; 0 where it is for all.
struct Gradient {
  ir::Value value;
  int64_t owner = 0;
  friend bool operator==(const Gradient&, const Gradient&) = default;
};

struct Bucket {
  std::vector<Gradient> gradients;
  int64_t bytes = 0;  // on the wire
  int place = 0;      // of the node behind which it is complete
  ir::Node* start = nullptr;
};

std::map<const ir::Node*, int> PlacesOf(const ir::Graph& graph) {
  std::map<const ir::Node*, int> places;
  for (const auto& node : graph.nodes())
    places.emplace(node.get(), static_cast<int>(places.size()));
  return places;
}

// The gradient that an input of an optimizer is.
Gradient GradientOf(const ir::Node& optimizer, int input) {
  const auto& owners = optimizer.attrs().GetInts("owners");
  if (owners.empty()) return {optimizer.input(input)};
  const Names& params = optimizer.attrs().Get<Names>("params");
  const std::string& param =
      optimizer.attrs().Get<Names>("grad_params")[static_cast<size_t>(input)];
  const auto at = std::find(params.begin(), params.end(), param) - params.begin();
  return {optimizer.input(input), owners[static_cast<size_t>(at)]};
}

// What optimizers read, each once, in the order of the nodes that give it.
std::vector<Gradient> GradientsOf(const std::vector<ir::Node*>& optimizers,
                                  const std::map<const ir::Node*, int>& places) {
  std::vector<Gradient> gradients;
  for (const ir::Node* optimizer : optimizers) {
    for (int i = 0; i < optimizer->num_inputs(); ++i) {
      const Gradient gradient = GradientOf(*optimizer, i);
      if (std::find(gradients.begin(), gradients.end(), gradient) == gradients.end()) {
        gradients.push_back(gradient);
      }
    }
  }
  std::stable_sort(gradients.begin(), gradients.end(), [&](const Gradient& a, const Gradient& b) {
    return std::pair(places.at(a.value.node), a.value.index) <
           std::pair(places.at(b.value.node), b.value.index);
  });
  return gradients;
}

// An optimizer whose gradients are those of several losses with different scalers takes flags of its
// own gradients alone, which would differ by rank; where they have one scaler it becomes the optimizer's.
absl::Status TakeOneScaler(const std::vector<ir::Node*>& optimizers) {
  std::map<std::string, std::set<std::string>> scalers;
  for (const ir::Node* optimizer : optimizers) {
    const Names& names = optimizer->attrs().Get<Names>("grad_scalers");
    scalers[optimizer->attrs().GetString("name")].insert(names.begin(), names.end());
  }
  for (ir::Node* optimizer : optimizers) {
    const std::string& name = optimizer->attrs().GetString("name");
    const std::set<std::string>& own = scalers[name];
    if (own.empty()) continue;
    if (own.size() > 1 || own.contains("")) {
      return Unimplemented("optimizer \"", name, "\": data_parallel.shard_optimizer with ",
                           "gradients of losses that have different scalers; expected one scaler");
    }
    optimizer->mutable_attrs().Set("scaler", *own.begin());
    optimizer->mutable_attrs().Set("grad_scalers", Names());
  }
  return absl::OkStatus();
}

class Reduction {
 public:
  Reduction(ir::Graph& graph, const ir::Node& marker)
      : graph_(graph), marker_(marker), b_(BuilderLike(marker, kInsertAllReducePass)) {}

  absl::Status Run(PassContext& context) {
    const std::map<const ir::Node*, int> places = PlacesOf(graph_);
    const std::vector<ir::Node*> optimizers = FindMarkers(graph_, "optimizer");
    if (shards()) HT_RETURN_IF_ERROR(TakeOneScaler(optimizers));
    for (const Gradient& gradient : GradientsOf(optimizers, places)) Put(gradient, places);
    // The word of a failure must come behind what can fail.
    const int last_start = buckets_.empty() ? -1 : buckets_.back().place;
    int last_fault = -1;
    for (const auto& [node, place] : places) {
      if (node->op().can_fault()) last_fault = std::max(last_fault, place);
    }
    if (buckets_.empty() || last_fault > last_start) {
      buckets_.push_back({{}, 0, std::max(last_fault, last_start), nullptr});
    }
    std::vector<ir::Node*> before = Snapshot(graph_);
    std::vector<ir::Node*> waits;
    for (Bucket& bucket : buckets_) {
      const bool to_owners = shards() && !bucket.gradients.empty();
      HT_RETURN_IF_ERROR(to_owners ? ReduceToOwners(bucket, waits)
                                   : Reduce(bucket, optimizers, waits));
    }
    Place(std::move(before), waits);
    if (shards()) {
      for (ir::Node* optimizer : optimizers) HT_RETURN_IF_ERROR(LeaveOwn(*optimizer));
    }
    HT_RETURN_IF_ERROR(ShareFlags());
    context.stats["buckets"] += static_cast<int64_t>(buckets_.size());
    for (const Bucket& bucket : buckets_) {
      context.stats["gradients"] += static_cast<int64_t>(bucket.gradients.size());
      context.stats["bytes"] += bucket.bytes;
    }
    return absl::OkStatus();
  }

 private:
  // Of f64 gradients f64: who computes in it does not want f32's digits.
  DType Wire(DType dtype) const {
    return dtype == DType::kF64 ? DType::kF64 : marker_.attrs().GetDType("wire");
  }

  bool shards() const { return marker_.attrs().GetBool("shard_optimizer"); }

  // Into the bucket of its dtype that is not full yet.
  void Put(const Gradient& of, const std::map<const ir::Node*, int>& places) {
    const ir::Value gradient = of.value;
    const int64_t bytes =
        gradient.type().num_elements() * static_cast<int64_t>(SizeOf(Wire(gradient.dtype())));
    const int64_t most = marker_.attrs().GetInt("bucket_bytes");
    const auto found = open_.find(gradient.dtype());
    if (found == open_.end() || buckets_[found->second].bytes + bytes > most) {
      open_[gradient.dtype()] = buckets_.size();
      buckets_.emplace_back();
    }
    Bucket& bucket = buckets_[open_[gradient.dtype()]];
    bucket.gradients.push_back(of);
    bucket.bytes += bytes;
    bucket.place = places.at(gradient.node);
  }

  absl::Status Reduce(Bucket& bucket, const std::vector<ir::Node*>& optimizers,
                      std::vector<ir::Node*>& waits) {
    const ir::Attributes& wishes = marker_.attrs();
    std::vector<Expr> inputs;
    std::vector<std::string> shapes;
    for (const Gradient& gradient : bucket.gradients) {
      inputs.push_back(b_.Wrap(gradient.value));
      shapes.push_back(gradient.value.shape().ToString());
    }
    const DType dtype = inputs.empty() ? DType::kF32 : inputs[0].dtype();
    const std::string name = Concat("bucket", waits.size());
    b_.NameNext(name);
    const Expr buffer = b_.Op("all_reduce_start", inputs,
                              {{"ranks", wishes.GetInt("ranks")},
                               {"reduction", wishes.GetString("reduction")},
                               {"wire", Wire(dtype)}});
    b_.NameNext(name + "_reduced");
    ir::Attributes of_wait = {{"ranks", wishes.GetInt("ranks")}, {"shapes", shapes}};
    if (buffer.dtype() != dtype) of_wait.Set("dtype", std::string(Name(dtype)));
    const std::vector<Expr> reduced = b_.Make("all_reduce_wait", {buffer}, of_wait);
    HT_RETURN_IF_ERROR(b_.status());
    bucket.start = buffer.value().node;
    waits.push_back(graph_.nodes().back().get());
    for (ir::Node* optimizer : optimizers) {
      for (int i = 0; i < optimizer->num_inputs(); ++i) {
        for (size_t k = 0; k < reduced.size(); ++k) {
          if (optimizer->input(i) == bucket.gradients[k].value) {
            optimizer->set_input(i, reduced[k].value());
            break;
          }
        }
      }
    }
    return absl::OkStatus();
  }

  absl::Status ReduceToOwners(Bucket& bucket, std::vector<ir::Node*>& waits) {
    const ir::Attributes& wishes = marker_.attrs();
    const int64_t rank = wishes.GetInt("rank");
    std::vector<Expr> inputs;
    std::vector<std::string> shapes;
    std::vector<int64_t> owners;
    for (const auto& [gradient, owner] : bucket.gradients) {
      inputs.push_back(b_.Wrap(gradient));
      shapes.push_back(gradient.shape().ToString());
      owners.push_back(owner);
    }
    const ir::Attributes layout = {
        {"ranks", wishes.GetInt("ranks")}, {"rank", rank}, {"shapes", shapes}, {"owners", owners}};
    ir::Attributes of_start = layout, of_wait = layout;
    of_start.Set("reduction", wishes.GetString("reduction"));
    of_start.Set("wire", Wire(inputs[0].dtype()));
    if (Wire(inputs[0].dtype()) != inputs[0].dtype()) {
      of_wait.Set("dtype", std::string(Name(inputs[0].dtype())));
    }
    const std::string name = Concat("bucket", waits.size());
    b_.NameNext(name);
    const Expr buffer = b_.Op("reduce_scatter_start", inputs, of_start);
    b_.NameNext(name + "_reduced");
    const std::vector<Expr> reduced = b_.Make("reduce_scatter_wait", {buffer}, of_wait);
    HT_RETURN_IF_ERROR(b_.status());
    bucket.start = buffer.value().node;
    waits.push_back(graph_.nodes().back().get());
    size_t k = 0;
    for (const Gradient& gradient : bucket.gradients) {
      if (gradient.owner == rank) own_.emplace_back(gradient, reduced[k++].value());
    }
    return absl::OkStatus();
  }

  // An optimizer with the gradients that this rank owns, reduced, and the names of the others'.
  absl::Status LeaveOwn(ir::Node& optimizer) {
    ir::Attributes attrs = optimizer.attrs();
    std::vector<Expr> inputs;
    Names params, elsewhere;
    for (int i = 0; i < optimizer.num_inputs(); ++i) {
      const Gradient gradient = GradientOf(optimizer, i);
      const std::string& param = attrs.Get<Names>("grad_params")[static_cast<size_t>(i)];
      const auto found = std::find_if(own_.begin(), own_.end(),
                                      [&](const auto& own) { return own.first == gradient; });
      if (found == own_.end()) {
        elsewhere.push_back(param);
        continue;
      }
      inputs.push_back(b_.Wrap(found->second));
      params.push_back(param);
    }
    attrs.Set("grad_params", params);
    attrs.Set("grads_elsewhere", elsewhere);
    for (const char* common : {"ranks", "rank", "bucket_bytes"}) {
      attrs.Set(common, marker_.attrs().GetInt(common));
    }
    b_.NameNext(optimizer.name());
    const std::vector<Expr> outputs = b_.Make("optimizer", inputs, attrs);
    HT_RETURN_IF_ERROR(b_.status());
    for (size_t i = 0; i < outputs.size(); ++i) {
      graph_.ReplaceUses(optimizer.output(static_cast<int>(i)), outputs[i].value());
    }
    graph_.Remove({&optimizer});
    return absl::OkStatus();
  }

  // What scalers have heard over a window, each rank of its own gradients (accumulate-gradients): whether all
  // ranks' were finite.
  absl::Status ShareFlags() {
    const int64_t ranks = marker_.attrs().GetInt("ranks");
    for (ir::Node* scaler : FindMarkers(graph_, "scaler")) {
      for (int i = 0; i < scaler->num_inputs(); ++i) {
        const Expr own = b_.Cast(b_.Wrap(scaler->input(i)), DType::kF32);
        b_.NameNext(scaler->attrs().GetString("name") + ".finite_ranks");
        const Expr sum =
            b_.Op("all_reduce", {own}, {{"ranks", ranks}, {"reduction", std::string("sum")}});
        const Expr all = b_.Op("equal", {sum, b_.Scalar(DType::kF32, static_cast<double>(ranks))});
        HT_RETURN_IF_ERROR(b_.status());
        scaler->set_input(i, all.value());
      }
    }
    return absl::OkStatus();
  }

  // Starts behind what completes them, waits before the first optimizer that stands behind all of it.
  void Place(std::vector<ir::Node*> before, const std::vector<ir::Node*>& waits) {
    int last = -1;
    for (const Bucket& bucket : buckets_) last = std::max(last, bucket.place);
    std::vector<ir::Node*> order, optimizers;
    const auto add_starts = [&](int place) {
      for (const Bucket& bucket : buckets_) {
        if (bucket.place == place) order.push_back(bucket.start);
      }
      if (place == last) order.insert(order.end(), waits.begin(), waits.end());
    };
    add_starts(-1);
    for (size_t i = 0; i < before.size(); ++i) {
      // Optimizers may stand before a gradient that is made late; then they come behind the waits.
      const bool is_optimizer = IsOp(*before[i], "optimizer");
      if (is_optimizer && static_cast<int>(i) <= last) {
        optimizers.push_back(before[i]);
      } else {
        order.push_back(before[i]);
      }
      add_starts(static_cast<int>(i));
      if (static_cast<int>(i) == last) {
        order.insert(order.end(), optimizers.begin(), optimizers.end());
      }
    }
    graph_.Reorder(order);
  }

  ir::Graph& graph_;
  const ir::Node& marker_;
  ir::Builder b_;
  std::vector<Bucket> buckets_;
  std::map<DType, size_t> open_;
  std::vector<std::pair<Gradient, ir::Value>> own_;  // where gradients go to owners; and reduced
};

class InsertAllReduce : public Pass {
 public:
  const char* name() const override { return kInsertAllReducePass; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    const std::vector<ir::Node*> markers = FindMarkers(graph, "data_parallel");
    if (markers.empty()) return false;
    if (markers.size() > 1) {
      return InvalidArgument(markers[1]->Label(), ": a second marker; expected one");
    }
    if (markers[0]->attrs().GetInt("ranks") > 1) {
      HT_RETURN_IF_ERROR(Reduction(graph, *markers[0]).Run(context));
    }
    graph.Remove(markers);
    HT_RETURN_IF_ERROR(graph.Sort());
    return true;
  }
};

}  // namespace

std::unique_ptr<Pass> MakeInsertAllReduce() { return std::make_unique<InsertAllReduce>(); }

}  // namespace halftone::passes
