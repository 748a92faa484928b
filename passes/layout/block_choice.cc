#include "halftone/passes/layout/block_choice.h"

#include <algorithm>
#include <utility>

#include "halftone/graph/ops/support/fused_body.h"
#include "halftone/graph/ops/support/window.h"
#include "halftone/passes/layout/storage_alias.h"
#include "halftone/passes/rewrite/rewrite.h"

namespace halftone::passes {
namespace {

using ir::Layout;
using ir::LayoutClass;
using ConstNodes = std::vector<const ir::Node*>;

// Images of so few channels stay plain: the library has such first layers.
constexpr int64_t kFewChannels = 3;

bool IsConvolution(const ir::Node& node) {
  return IsOp(node, "conv2d") || IsOp(node, "conv2d_grad_input") ||
         IsOp(node, "conv2d_grad_weight");
}

bool CanChange(const ir::ValueType& type) {
  return type.layout == Layout::kChannelsLast && ir::CanLie(type.shape, Layout::kChannelBlocks);
}

// The images of a convolution.
struct Images {
  explicit Images(const ir::Node& conv)
      : x(IsOp(conv, "conv2d_grad_input") ? conv.output() : conv.input(0)),
        y(IsOp(conv, "conv2d_grad_input")    ? conv.input(0)
          : IsOp(conv, "conv2d_grad_weight") ? conv.input(1)
                                             : conv.output()) {}
  ir::Value x, y;
};

// Whether operand `port` of a convolution is an image of so few channels that it stays plain beside one in blocks.
bool IsFirstImage(const ir::Node& node, int port) {
  return port == 0 && (IsOp(node, "conv2d") || IsOp(node, "conv2d_grad_weight")) &&
         node.input_type(0).shape.dim(1) <= kFewChannels;
}

// Whether the node may have its images in blocks.
bool CanBlock(const ir::Node& node) {
  const ir::LayoutTrait& trait = node.op().layout;
  if (!trait.channel_blocks || node.num_outputs() == 0) return false;
  if (trait.kind == LayoutClass::kFollows) {
    ir::ValueType y = node.output_type();
    if (!CanChange(y)) return false;
    y.layout = Layout::kChannelBlocks;
    return std::all_of(node.inputs().begin(), node.inputs().end(), [&](ir::Value v) {
      return v.shape() == y.shape || ops::AccessOf(v.type(), y).has_value();
    });
  }
  // A relayout names no port.
  if (trait.channels_last_inputs.empty()) return false;
  if (IsConvolution(node)) {
    const Images images(node);
    const DType dtype = node.input_type(0).dtype;
    return node.attrs().GetInt("groups") == 1 && (dtype == DType::kF32 || IsLow(dtype)) &&
           (CanChange(images.x.type()) || CanChange(images.y.type()));
  }
  return std::all_of(trait.channels_last_inputs.begin(), trait.channels_last_inputs.end(),
                     [&](int port) { return CanChange(node.input_type(port)); }) &&
         std::all_of(trait.channels_last_outputs.begin(), trait.channels_last_outputs.end(),
                     [&](int port) { return CanChange(node.output_type(port)); });
}

// What a convolution gains by blocks, as bytes that could be relaid meanwhile. On Zen 4 those of resnet50 take 7
// to 8 % less time in blocks (benchmarks/measured.md), at 210 GFLOP/s in f32 and 400 in bf16, and a relayout is
// taken to move 5 GB/s. Its kernel relays an image whose channels fill no blocks, to whole ones.
double GainOf(const ir::Node& node) {
  if (!IsConvolution(node)) return 0;
  const double bytes_per_flop = IsLow(node.input_type(0).dtype) ? 0.9e-3 : 1.8e-3;
  double gain = ops::ConvGeometryOf(node).flops() * bytes_per_flop;
  const Images images(node);
  for (const ir::Value image : {images.x, images.y}) {
    if (CanChange(image.type())) continue;
    if (image == node.input(0) && IsFirstImage(node, 0)) continue;
    const int64_t channels = image.shape().dim(1);
    const int64_t whole =
        (channels + ir::kChannelBlock - 1) / ir::kChannelBlock * ir::kChannelBlock;
    gain -= static_cast<double>(image.type().num_bytes() / std::max<int64_t>(1, channels) * whole);
  }
  return gain;
}

}  // namespace

BlockChoice::BlockChoice(const ir::Graph& graph) : uses_(graph) {
  ConstNodes candidates;
  for (const auto& node : graph.nodes()) {
    if (CanBlock(*node)) candidates.push_back(node.get());
  }
  in_blocks_.insert(candidates.begin(), candidates.end());
  for (const auto& node : graph.nodes()) Count(*node, 1);
  for (const ir::Output& output : graph.outputs()) {
    const ir::Value v = output.value;
    if (v.shape().rank() == 4) {
      ++asked_[{v.node->id(), v.index}][static_cast<size_t>(v.type().layout)];
    }
  }
  // Each flip lowers the cost, so this ends; the bound is for time.
  constexpr int kMaxRounds = 16;
  bool changed = true;
  for (int round = 0; changed && round < kMaxRounds; ++round) {
    changed = false;
    for (const ir::Node* node : candidates) changed |= LeavesAlone(node);
  }
  std::set<const ir::Node*> seen;
  for (const ir::Node* node : candidates) {
    if (!in_blocks_.contains(node) || seen.contains(node)) continue;
    const ConstNodes group = GroupOf(node);
    seen.insert(group.begin(), group.end());
    const double before = CostAround(group);
    for (const ir::Node* member : group) Flip(member);
    if (CostAround(group) <= before) continue;
    for (const ir::Node* member : group) Flip(member);
  }
}

Layout BlockChoice::Given(ir::Value v) const {
  const ir::LayoutTrait& trait = v.node->op().layout;
  const bool changes =
      in_blocks_.contains(v.node) && CanChange(v.type()) &&
      (trait.kind == LayoutClass::kFollows || Contains(trait.channels_last_outputs, v.index));
  return changes ? Layout::kChannelBlocks : v.type().layout;
}

Layout BlockChoice::Asked(const ir::Node& node, int port) const {
  if (IsOp(node, "relayout")) return Given(node.input(port));
  const ir::ValueType& type = node.input_type(port);
  if (!in_blocks_.contains(&node)) return type.layout;
  const ir::LayoutTrait& trait = node.op().layout;
  if (trait.kind == LayoutClass::kFollows) {
    return type.shape == node.output_type().shape ? Layout::kChannelBlocks : type.layout;
  }
  if (!Contains(trait.channels_last_inputs, port)) return type.layout;
  if (IsFirstImage(node, port)) return Layout::kPlain;
  return CanChange(type) ? Layout::kChannelBlocks : type.layout;
}

// Adds what a node asks for to the counts, or takes it from them. A relayout copies from any layout.
void BlockChoice::Count(const ir::Node& reader, int times) {
  if (IsOp(reader, "relayout")) return;
  for (int port = 0; port < reader.num_inputs(); ++port) {
    const ir::Value v = reader.input(port);
    if (v.shape().rank() != 4) continue;
    asked_[{v.node->id(), v.index}][static_cast<size_t>(Asked(reader, port))] += times;
  }
}

// Bytes relaid for the readers of `v`: one copy for each layout that they ask for and that is not there.
double BlockChoice::CostOf(ir::Value v) const {
  const auto asked = asked_.find({v.node->id(), v.index});
  if (asked == asked_.end()) return 0;
  const Layout there = IsOp(*v.node, "relayout") ? Given(v.node->input(0)) : Given(v);
  int copies = 0;
  for (size_t i = 0; i < asked->second.size(); ++i) {
    const auto layout = static_cast<Layout>(i);
    if (asked->second[i] > 0 && !IsSameOrder(v.shape(), there, layout)) ++copies;
  }
  return static_cast<double>(copies) * static_cast<double>(v.type().num_bytes());
}

double BlockChoice::CostAround(const ConstNodes& nodes) const {
  std::set<std::pair<const ir::Node*, int>> values;
  double cost = 0;
  const auto add = [&](ir::Value v) {
    if (values.insert({v.node, v.index}).second) cost += CostOf(v);
  };
  for (const ir::Node* node : nodes) {
    for (ir::Value v : node->inputs()) add(v);
    for (int i = 0; i < node->num_outputs(); ++i) add(node->output(i));
    if (in_blocks_.contains(node)) cost -= GainOf(*node);
  }
  return cost;
}

void BlockChoice::Flip(const ir::Node* node) {
  Count(*node, -1);
  if (in_blocks_.erase(node) == 0) in_blocks_.insert(node);
  Count(*node, 1);
}

bool BlockChoice::LeavesAlone(const ir::Node* node) {
  const double before = CostAround({node});
  Flip(node);
  if (CostAround({node}) < before) return true;
  Flip(node);
  return false;
}

// The nodes in blocks that values in blocks lead to, either way.
ConstNodes BlockChoice::GroupOf(const ir::Node* start) const {
  ConstNodes group = {start};
  std::set<const ir::Node*> seen = {start};
  std::set<std::pair<const ir::Node*, int>> seen_values;
  const auto add = [&](const ir::Node* node) {
    if (in_blocks_.contains(node) && seen.insert(node).second) group.push_back(node);
  };
  const auto follow = [&](ir::Value v) {
    if (v.shape().rank() != 4 || !seen_values.insert({v.node, v.index}).second) return;
    add(v.node);
    for (const ir::UseMap::Use& use : uses_.uses(v)) add(use.node);
  };
  for (size_t i = 0; i < group.size(); ++i) {
    const ir::Node& node = *group[i];
    for (ir::Value v : node.inputs()) follow(v);
    for (int k = 0; k < node.num_outputs(); ++k) follow(node.output(k));
  }
  return group;
}

}  // namespace halftone::passes
