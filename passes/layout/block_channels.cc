#include "halftone/passes/layout/block_channels.h"

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "halftone/passes/layout/block_choice.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ir::Layout;

class BlockChannels : public Pass {
 public:
  const char* name() const override { return "block-channels"; }

  absl::StatusOr<bool> Run(ir::Graph& graph, PassContext& context) override {
    if (!context.target->PrefersChannelBlocks() || HasBlocks(graph)) return false;
    const BlockChoice choice(graph);
    const std::vector<ir::Node*> nodes = Snapshot(graph);
    // What is asked for depends on types as they are, so all of it is asked before any changes.
    std::vector<std::vector<Layout>> asked;
    int64_t values = 0;
    for (const ir::Node* node : nodes) {
      asked.emplace_back();
      for (int port = 0; port < node->num_inputs(); ++port) {
        asked.back().push_back(choice.Asked(*node, port));
      }
    }
    std::vector<Layout> of_outputs;
    for (const ir::Output& output : graph.outputs())
      of_outputs.push_back(output.value.type().layout);
    for (ir::Node* node : nodes) {
      if (!choice.InBlocks(*node)) continue;
      for (int i = 0; i < node->num_outputs(); ++i) {
        const Layout given = choice.Given(node->output(i));
        if (given != node->output_type(i).layout) ++values;
        node->mutable_output_types()[i].layout = given;
      }
    }
    if (values == 0) return false;
    relaid_.clear();
    for (size_t i = 0; i < nodes.size(); ++i) {
      for (int port = 0; port < nodes[i]->num_inputs(); ++port) {
        HT_ASSIGN_OR_RETURN(
            const ir::Value v,
            InLayout(nodes[i]->input(port), asked[i][static_cast<size_t>(port)], context));
        nodes[i]->set_input(port, v);
      }
    }
    for (size_t i = 0; i < of_outputs.size(); ++i) {
      ir::Value& value = graph.outputs()[i].value;
      HT_ASSIGN_OR_RETURN(value, InLayout(value, of_outputs[i], context));
    }
    context.stats["in_blocks"] += values;
    return true;
  }

 private:
  static bool HasBlocks(const ir::Graph& graph) {
    for (const auto& node : graph.nodes()) {
      for (int i = 0; i < node->num_outputs(); ++i) {
        if (node->output_type(i).layout == Layout::kChannelBlocks) return true;
      }
    }
    return false;
  }

  // `v` in `layout`: itself, what it was relaid from, or its one relayout.
  absl::StatusOr<ir::Value> InLayout(ir::Value v, Layout layout, PassContext& context) {
    if (v.type().layout == layout) return v;
    const ir::Value source = IsOp(*v.node, "relayout") ? v.node->input(0) : v;
    if (source.type().layout == layout) return source;
    ir::Value& relaid = relaid_[{source.node->id(), source.index, layout}];
    if (!relaid.valid()) {
      ir::Builder b = BuilderLike(*source.node, name());
      b.NameNext(source.node->name() + "_" + ir::Name(layout));
      relaid = b.Op("relayout", {b.Wrap(source)}, {{"to", std::string(ir::Name(layout))}}).value();
      HT_RETURN_IF_ERROR(b.status());
      context.stats["relayouts"] += 1;
    }
    return relaid;
  }

  std::map<std::tuple<int64_t, int, Layout>, ir::Value> relaid_;
};

}  // namespace

std::unique_ptr<Pass> MakeBlockChannels() { return std::make_unique<BlockChannels>(); }

}  // namespace halftone::passes
