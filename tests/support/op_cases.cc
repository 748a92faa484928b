#include "halftone/tests/support/op_cases.h"

#include <algorithm>
#include <set>

#include "halftone/core/philox.h"
#include "halftone/graph/ir/builder.h"

namespace halftone::testing {
namespace {

DType TypeUnderTest(const OpInput& input, DType dtype) {
  if (!IsFloat(input.type.dtype)) return input.type.dtype;
  if (input.pinned && dtype != DType::kF64) return input.type.dtype;
  return dtype;
}

// lo, lo + step, ... shifted by an uneven share of the step, so that neither 0 nor the middle of an
// odd count is hit; in random order.
std::vector<double> DistinctValues(const InputGen& gen, int64_t count, PhiloxStream& random) {
  std::vector<double> values(count);
  for (int64_t i = 0; i < count; ++i) {
    values[i] =
        gen.lo + (gen.hi - gen.lo) * (static_cast<double>(i) + 0.37) / static_cast<double>(count);
  }
  for (int64_t i = count - 1; i > 0; --i) {
    std::swap(values[i], values[random.Below(static_cast<uint64_t>(i) + 1)]);
  }
  return values;
}

std::vector<double> Generate(const InputGen& gen, int64_t count, PhiloxStream& random) {
  std::vector<double> values(count);
  switch (gen.kind) {
    case InputGen::Kind::kUniform:
      for (double& v : values) v = gen.lo + (gen.hi - gen.lo) * random.Uniform();
      break;
    case InputGen::Kind::kInts:
      for (double& v : values) {
        v = gen.lo + static_cast<double>(random.Below(static_cast<uint64_t>(gen.hi - gen.lo) + 1));
      }
      break;
    case InputGen::Kind::kDistinct:
      return DistinctValues(gen, count, random);
    case InputGen::Kind::kFixed:
      return gen.values;
  }
  return values;
}

bool Names(const std::vector<int>& ports, int port) {
  return std::find(ports.begin(), ports.end(), port) != ports.end();
}

// Whether the layout trait says something of this operand's layout.
bool HasLayout(const ir::LayoutTrait& trait, const std::vector<int>& ports, int port,
               const Shape& shape, const Shape& result) {
  if (shape.rank() != 4) return false;
  if (trait.kind == ir::LayoutClass::kFollows) return shape == result;
  return trait.kind == ir::LayoutClass::kChannelsLast && Names(ports, port);
}

// Calls visit(type, whether it is operand 0) for each type whose layout the trait has a say in.
template <typename Visit>
void ForLaidTypes(ir::Node& node, const Visit& visit) {
  const ir::LayoutTrait& trait = node.op().layout;
  const Shape result = node.output_type(0).shape;
  for (int i = 0; i < node.num_inputs(); ++i) {
    if (HasLayout(trait, trait.channels_last_inputs, i, node.input_type(i).shape, result)) {
      visit(node.input(i).node->mutable_output_types()[0], i == 0);
    }
  }
  for (int i = 0; i < node.num_outputs(); ++i) {
    ir::ValueType& type = node.mutable_output_types()[i];
    if (HasLayout(trait, trait.channels_last_outputs, i, type.shape, result)) visit(type, false);
  }
}

// An image whose channels fill no blocks lies as block-channels leaves it beside one in blocks: plain
// where it is that of a first layer.
void SetLayout(ir::Node& node, ir::Layout layout) {
  ForLaidTypes(node, [&](ir::ValueType& type, bool is_operand_0) {
    const bool is_first_image =
        is_operand_0 && type.shape[1] <= 3 && node.op().name != "conv2d_grad_input";
    type.layout = ir::CanLie(type.shape, layout) ? layout
                  : is_first_image               ? ir::Layout::kPlain
                                                 : ir::Layout::kChannelsLast;
  });
}

// Whether the case has what block-channels moves.
bool TakesBlocks(const OpCase& c) {
  const std::unique_ptr<ir::Graph> graph = BuildCaseGraph(c, DType::kF32);
  ir::Node& node = *CaseNode(*graph);
  if (!node.op().layout.channel_blocks) return false;
  int whole = 0, others = 0;
  ForLaidTypes(node, [&](const ir::ValueType& type, bool) {
    const bool fills = type.shape[1] > 0 && ir::CanLie(type.shape, ir::Layout::kChannelBlocks);
    ++(fills ? whole : others);
  });
  if (c.attrs.Has("groups")) return whole > 0 && node.attrs().GetInt("groups") == 1;
  return whole > 0 && others == 0;
}

}  // namespace

std::vector<ir::Layout> LayoutsOf(const OpCase& c) {
  std::vector<ir::Layout> layouts = {ir::Layout::kPlain};
  if (!c.channels_last) return layouts;
  layouts.push_back(ir::Layout::kChannelsLast);
  if (TakesBlocks(c)) layouts.push_back(ir::Layout::kChannelBlocks);
  return layouts;
}

std::vector<std::string> OpsWithCases(CaseFilter wanted) {
  std::set<std::string> ops;
  for (const OpCase& c : AllOpCases()) {
    if (wanted(c)) ops.insert(c.op);
  }
  return {ops.begin(), ops.end()};
}

std::vector<const OpCase*> CasesOf(const std::string& op, CaseFilter wanted) {
  std::vector<const OpCase*> cases;
  for (const OpCase& c : AllOpCases()) {
    if (c.op == op && wanted(c)) cases.push_back(&c);
  }
  return cases;
}

std::string OpTestName(const ::testing::TestParamInfo<std::string>& info) { return info.param; }

std::unique_ptr<ir::Graph> BuildCaseGraph(const OpCase& c, DType dtype, ir::Layout layout) {
  auto graph = std::make_unique<ir::Graph>("case");
  ir::Builder builder(graph.get());
  std::vector<ir::Expr> inputs;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    ir::ValueType type = c.inputs[i].type;
    type.dtype = TypeUnderTest(c.inputs[i], dtype);
    inputs.push_back(builder.Input(Concat("x", i), type));
  }
  ir::Attributes attrs = c.attrs;
  if (dtype == DType::kF64 && attrs.Has("out")) attrs.Set("out", std::string());
  const std::vector<ir::Expr> outputs = builder.Make(c.op, inputs, std::move(attrs));
  if (!builder.status().ok()) {
    const std::string message = c.name + ": " + Message(builder.status());
    internal::CheckFailed(__FILE__, __LINE__, "op case", message.c_str());
  }
  for (const ir::Expr& output : outputs) graph->outputs().push_back({"", output.value()});
  if (layout != ir::Layout::kPlain) SetLayout(*CaseNode(*graph), layout);
  return graph;
}

ir::Node* CaseNode(const ir::Graph& graph) { return graph.nodes().back().get(); }

std::vector<Tensor> MakeCaseInputs(const OpCase& c, DType dtype) {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    const OpInput& input = c.inputs[i];
    PhiloxStream random(HashName(c.name.data(), c.name.size()), i);
    const Shape& shape = input.type.shape;
    tensors.push_back(Tensor::Of(TypeUnderTest(input, dtype), shape,
                                 Generate(input.gen, shape.num_elements(), random)));
  }
  return tensors;
}

OpInput Reals(Shape shape, double lo, double hi) {
  OpInput input;
  input.type = {DType::kF32, std::move(shape)};
  input.gen.lo = lo;
  input.gen.hi = hi;
  return input;
}

OpInput Distinct(Shape shape, double lo, double hi) {
  OpInput input = Reals(std::move(shape), lo, hi);
  input.gen.kind = InputGen::Kind::kDistinct;
  return input;
}

OpInput Fixed(Shape shape, std::vector<double> values) {
  OpInput input = Reals(std::move(shape));
  input.gen.kind = InputGen::Kind::kFixed;
  input.gen.values = std::move(values);
  return input;
}

OpInput Whole(DType dtype, Shape shape, double lo, double hi) {
  OpInput input = Frozen(Pinned(Reals(std::move(shape), lo, hi)));
  input.type.dtype = dtype;
  input.gen.kind = InputGen::Kind::kInts;
  return input;
}

OpInput Bools(Shape shape) { return Whole(DType::kBool, std::move(shape), 0, 1); }

OpInput Pinned(OpInput input) {
  input.pinned = true;
  return input;
}

OpInput Frozen(OpInput input) {
  input.differentiable = false;
  return input;
}

OpCase Case(const std::string& op, const std::string& variant, std::vector<OpInput> inputs,
            ir::Attributes attrs) {
  OpCase c;
  c.name = op + "/" + variant;
  c.op = op;
  c.inputs = std::move(inputs);
  c.attrs = std::move(attrs);
  return c;
}

OpCase NoGradient(OpCase c) {
  c.gradient = false;
  return c;
}

}  // namespace halftone::testing
