#include "halftone/passes/layout/assign_layouts.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ir::Layout;
using ir::LayoutClass;

// Which layout each node gives and asks for; a function of one choice per node that follows.
class LayoutChoice {
 public:
  explicit LayoutChoice(const ir::Graph& graph) : uses_(graph) {
    for (const auto& node : graph.nodes()) {
      if (Follows(*node)) followers_.push_back(node.get());
    }
    for (const ir::Node* node : followers_) {
      const std::vector<ir::Value>& inputs = node->inputs();
      if (std::any_of(inputs.begin(), inputs.end(), [&](ir::Value v) {
            return v.shape() == node->output_type().shape && Given(v) == Layout::kChannelsLast;
          })) {
        channels_last_.insert(node);
      }
    }
    for (const auto& node : graph.nodes()) Count(*node, 1);
    // Each flip lowers the bytes relaid, so this ends; the bound is for time.
    bool changed = true;
    for (int round = 0; changed && round < kMaxRounds; ++round) {
      changed = false;
      for (auto it = followers_.rbegin(); it != followers_.rend(); ++it) {
        changed |= FlipIfBetter(**it);
      }
    }
  }

  Layout Given(ir::Value v) const {
    if (v.shape().rank() != 4) return Layout::kPlain;
    const ir::LayoutTrait& trait = v.node->op().layout;
    const bool last = trait.kind == LayoutClass::kChannelsLast
                          ? Contains(trait.channels_last_outputs, v.index)
                          : channels_last_.contains(v.node);
    return last ? Layout::kChannelsLast : Layout::kPlain;
  }

  Layout Asked(const ir::Node& node, int port) const {
    const Shape& shape = node.input_type(port).shape;
    if (shape.rank() != 4) return Layout::kPlain;
    const ir::LayoutTrait& trait = node.op().layout;
    const bool last = trait.kind == LayoutClass::kChannelsLast
                          ? Contains(trait.channels_last_inputs, port)
                          : channels_last_.contains(&node) && shape == node.output_type().shape;
    return last ? Layout::kChannelsLast : Layout::kPlain;
  }

 private:
  static constexpr int kMaxRounds = 16;

  // Whether an op that follows has an operand to follow.
  static bool Follows(const ir::Node& node) {
    if (node.op().layout.kind != LayoutClass::kFollows || node.num_outputs() == 0) return false;
    const Shape& shape = node.output_type().shape;
    const std::vector<ir::Value>& inputs = node.inputs();
    return shape.rank() == 4 && std::any_of(inputs.begin(), inputs.end(),
                                            [&](ir::Value v) { return v.shape() == shape; });
  }

  // Bytes moved because a reader of `v` asks for the layout it is not given in.
  int64_t RelaidBytes(ir::Value v) const {
    if (v.shape().rank() != 4) return 0;
    const Layout given = Given(v);
    if (IsSameOrder(v.shape(), Layout::kPlain, Layout::kChannelsLast)) return 0;
    const auto asked = asked_.find({v.node->id(), v.index});
    const Layout other = given == Layout::kPlain ? Layout::kChannelsLast : Layout::kPlain;
    const bool relaid = (uses_.is_output(v) && given != Layout::kPlain) ||
                        (asked != asked_.end() && asked->second[static_cast<size_t>(other)] > 0);
    return relaid ? v.type().num_bytes() : 0;
  }

  int64_t RelaidBytesAround(const ir::Node& node) const {
    int64_t bytes = 0;
    std::set<std::pair<int64_t, int>> seen;
    for (ir::Value v : node.inputs()) {
      if (seen.insert({v.node->id(), v.index}).second) bytes += RelaidBytes(v);
    }
    for (int i = 0; i < node.num_outputs(); ++i) bytes += RelaidBytes(node.output(i));
    return bytes;
  }

  bool FlipIfBetter(const ir::Node& node) {
    const int64_t before = RelaidBytesAround(node);
    Flip(node);
    if (RelaidBytesAround(node) < before) return true;
    Flip(node);
    return false;
  }

  void Flip(const ir::Node& node) {
    Count(node, -1);
    if (channels_last_.erase(&node) == 0) channels_last_.insert(&node);
    Count(node, 1);
  }
  // Adds what a node asks for to the counts, or takes it from them.
  void Count(const ir::Node& reader, int times) {
    for (int port = 0; port < reader.num_inputs(); ++port) {
      const ir::Value v = reader.input(port);
      if (v.shape().rank() != 4) continue;
      asked_[{v.node->id(), v.index}][static_cast<size_t>(Asked(reader, port))] += times;
    }
  }

  const ir::UseMap uses_;
  std::vector<const ir::Node*> followers_;
  std::set<const ir::Node*> channels_last_;  // followers only
  // By value, how often each layout is asked for, so that a value of many readers costs no more to judge.
  std::map<std::pair<int64_t, int>, std::array<int, 2>> asked_;
};

class AssignLayouts : public Pass {
 public:
  const char* name() const override { return "assign-layouts"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    if (!context.target->PrefersChannelsLast() || HasLayouts(graph)) return false;
    const LayoutChoice choice(graph);
    int64_t values = 0;
    const std::vector<ir::Node*> nodes = Snapshot(graph);
    // What a reader asks for depends on shapes only: types may change first.
    for (ir::Node* node : nodes) {
      for (int i = 0; i < node->num_outputs(); ++i) {
        const Layout given = choice.Given(node->output(i));
        node->mutable_output_types()[i].layout = given;
        values += given == Layout::kChannelsLast ? 1 : 0;
      }
    }
    relaid_.clear();
    for (ir::Node* node : nodes) {
      for (int port = 0; port < node->num_inputs(); ++port) {
        HT_ASSIGN_OR_RETURN(const ir::Value v,
                            InLayout(node->input(port), choice.Asked(*node, port), context));
        node->set_input(port, v);
      }
    }
    for (ir::Output& output : graph.outputs()) {
      HT_ASSIGN_OR_RETURN(output.value, InLayout(output.value, Layout::kPlain, context));
    }
    context.stats["channels_last"] += values;
    return values > 0 || !relaid_.empty();
  }

 private:
  static bool HasLayouts(const ir::Graph& graph) {
    for (const auto& node : graph.nodes()) {
      for (int i = 0; i < node->num_outputs(); ++i) {
        if (node->output_type(i).layout != Layout::kPlain) return true;
      }
    }
    return false;
  }

  // `v` in `layout`: itself, or its one relayout.
  absl::StatusOr<ir::Value> InLayout(ir::Value v, Layout layout, PassContext& context) {
    if (v.type().layout == layout) return v;
    ir::Value& relaid = relaid_[{v.node->id(), v.index}];
    if (!relaid.valid()) {
      const std::string to = ir::Name(layout);
      ir::Builder b = BuilderLike(*v.node, name());
      b.NameNext(v.node->name() + "_" + to);
      relaid = b.Op("relayout", {b.Wrap(v)}, {{"to", to}}).value();
      HT_RETURN_IF_ERROR(b.status());
      context.stats["relayouts"] += 1;
      if (!IsSameOrder(v.shape(), v.type().layout, layout)) {
        context.stats["relayout_bytes"] += v.type().num_bytes();
      }
    }
    return relaid;
  }

  std::map<std::pair<int64_t, int>, ir::Value> relaid_;
};

}  // namespace

std::unique_ptr<Pass> MakeAssignLayouts() { return std::make_unique<AssignLayouts>(); }

}  // namespace halftone::passes
