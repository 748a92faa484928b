// What a module is told about mixed precision: Module::set_amp.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "halftone/tests/nn/fn_graph.h"

namespace halftone::nn {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

// {x, whole} -> (x + 0.25) - 4096, which 16 bit cannot do at x = 4096; whole numbers as they are.
class QuarterOf : public Module {
 public:
  Values forward(const Values& in) override { return {(in[0] + 0.25) - 4096.0, in[1]}; }
};
class ModuleOfProducts : public Module {
 public:
  Value forward(const Value& x) override { return matmul(x, x); }
};

// 4096 as the square of 64, through both modules, between products that are f16. Right: 0.25.
class QuarterGraph : public FnGraph {
 public:
  QuarterGraph() {
    fn = [this](const Values& in) -> Values {
      const Values out = quarter({product(in[0]), in[2]});
      return {matmul(out[0], in[1]), out[1]};
    };
    add_module("product", product);
    add_module("quarter", quarter);
    to(Device::Reference());
    config.enable_amp(true, {.dtype = DType::kF16, .trim = false});
  }
  double Run() {
    const std::vector<Tensor> out =
        Call(*this, {F32({1, 1}, {64}), F32({1, 1}, {1}), I64({1}, {123456789})});
    if (out.size() != 2) return NAN;
    EXPECT_EQ(out[1].dtype(), DType::kI64);
    EXPECT_EQ(out[1].at(0), 123456789);
    return out[0].at(0);
  }
  ModuleOfProducts product;
  QuarterOf quarter;
};

TEST(ModuleAmp, NothingSaidIs16Bit) { EXPECT_EQ(QuarterGraph().Run(), 0); }

TEST(ModuleAmp, OpsInF32AndBack) {
  QuarterGraph graph;
  graph.quarter.set_amp({.fp32 = true});
  EXPECT_EQ(graph.Run(), 0.25);
  EXPECT_EQ(graph.quarter.amp_request(), -1);
  graph.quarter.set_amp({});
  EXPECT_EQ(graph.Run(), 0);
  graph.quarter.keep_fp32();
  EXPECT_TRUE(graph.quarter.amp().fp32);
  EXPECT_EQ(graph.Run(), 0.25);
  graph.quarter.allow_low();
  EXPECT_EQ(graph.quarter.amp(), ModuleAmp{.low = true});
  EXPECT_EQ(graph.Run(), 0);
}

TEST(ModuleAmp, OperandsByPosition) {
  QuarterGraph graph;
  graph.quarter.set_amp({.fp32_inputs = {0, 1}});  // the second one is whole numbers, left alone
  EXPECT_EQ(graph.Run(), 0.25);
  graph.quarter.set_amp({.fp32_inputs = {1}});
  EXPECT_EQ(graph.Run(), 0) << "another step than with other positions";
  graph.quarter.set_amp({.fp32_inputs = {0}});
  graph.eval();
  EXPECT_EQ(graph.Run(), 0.25);
}

TEST(ModuleAmp, ResultsInF32) {
  QuarterGraph graph;
  graph.product.set_amp({.fp32_outputs = true});
  EXPECT_EQ(graph.Run(), 0.25);
  const auto& nodes = graph.compiled_graph()->nodes();
  const auto product = std::find_if(nodes.begin(), nodes.end(),
                                    [](const auto& node) { return node->op().name == "matmul"; });
  ASSERT_NE(product, nodes.end());
  EXPECT_EQ((*product)->input_type(0).dtype, DType::kF16) << "its own ops are 16 bit all the same";
}

TEST(ModuleAmp, F64StaysF64) {
  ModuleOfProducts product;
  product.set_amp({.fp32_inputs = {0}, .fp32_outputs = true});
  FnGraph graph([&](const Values& in) -> Values { return {product(in[0])}; });
  graph.add_module("product", product);
  const std::vector<Tensor> out = Call(graph, {Tensor::Of(DType::kF64, {1, 1}, {1 + 0x1p-40})});
  ASSERT_EQ(out.size(), 1u);
  EXPECT_EQ(out[0].dtype(), DType::kF64);
  EXPECT_EQ(out[0].at(0), (1 + 0x1p-40) * (1 + 0x1p-40));
}

TEST(ModuleAmp, Errors) {
  QuarterOf both, below;
  both.set_amp({.fp32 = true, .low = true});
  EXPECT_EQ(Message(both.status()), "Module: set_amp got fp32 and low; expected one of them");
  EXPECT_EQ(both.amp(), ModuleAmp());
  below.set_amp({.fp32_inputs = {0, -1}});
  EXPECT_EQ(Message(below.status()), "Module: set_amp names input -1; expected a position from 0");

  QuarterGraph graph;
  graph.quarter.set_amp({.fp32_inputs = {2}});
  EXPECT_THAT(Message(CallStatus(graph, {F32({1, 1}, {64}), F32({1, 1}, {1}), I64({1}, {1})})),
              ::testing::AllOf(StartsWith("module_amp_test.cc:"),
                               HasSubstr("Module: set_amp names input 2; the call has 2")));
}

}  // namespace
}  // namespace halftone::nn
