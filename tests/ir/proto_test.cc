// The stored form: lossless, and strict about what it reads.
#include "halftone/graph/ir/proto.h"

#include <gtest/gtest.h>

#include "halftone/proto/graph.pb.h"
#include "halftone/tests/ir/test_ops.h"

namespace halftone::ir {
namespace {

const char kProtoText[] =
    R"g(graph @"a graph"(%x: f32[2] @"data" loc("main.cc":7), %y "labels": i64[3]) {
  variable "gone" {init="normal(0,0.02)", kind="buffer", trainable=false} : f64[2,2]
  %w = variable "fc.weight" {init="uniform(-1,1)"} : f32[2]
  %c = constant {value=dense<f32[3]>(nan, -0, 0x7fc00001)} : f32[3]
  %s = constant {value=splat<bool[5]>(true)} : bool[5]
  %a, %a#1 = test_two(%x) : f32[2], f32[2] @"enc" pass("autodiff","x") recompute("enc#1") amp(infer,bf16,"fp16: near") keep_f32
  %m = test_mix(%a#1, %w) {k=-3} : f32[2] allow_low
  %t = test_attrs() {b=true, d=f16, f=inf, fs=[0.1], i=-1, is=[], s="\x00\n", ss=["", "x"], t=dense<i32[]>(4)} : f32[]
  %r = test_root(%m, %y) {tag="t"}
  %k = commit "fc.weight" = %m
  return %a#1, second=%m
}
)g";

GraphProto Stored() {
  GraphProto proto;
  EXPECT_TRUE(proto.ParseFromString(*ToProtoBytes(*ParseOrDie(kProtoText))));
  return proto;
}

absl::Status Read(const GraphProto& proto) {
  return FromProtoBytes(proto.SerializeAsString()).status();
}

TEST(Proto, TextToProtoToTextIsAFixedPoint) {
  const auto graph = ParseOrDie(kProtoText);
  const auto bytes = ToProtoBytes(*graph);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  const auto back = FromProtoBytes(*bytes);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(Print(**back, TextOptions::Lossless()), kProtoText);
  EXPECT_EQ((*back)->Hash(), graph->Hash());
  EXPECT_EQ(*ToProtoBytes(**back), *bytes);
}

TEST(Proto, BeginsWithItsVersion) {
  const std::string bytes = *ToProtoBytes(Graph("g"));
  EXPECT_EQ(bytes.substr(0, 2), "\x08\x01");
}

TEST(Proto, AbsentAttributesTakeTheDefault) {
  GraphProto proto = Stored();
  for (NodeProto& node : *proto.mutable_nodes()) {
    if (node.op() == "test_attrs") node.clear_attributes();
  }
  const auto graph = FromProtoBytes(proto.SerializeAsString());
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->FindNode("t")->attrs().GetInt("i"), 7);
}

TEST(Proto, RefusesToWriteABrokenGraph) {
  const auto graph = ParseOrDie(kProtoText);
  graph->FindNode("m")->set_input(0, graph->FindNode("m")->output());
  EXPECT_EQ(ToProtoBytes(*graph).status().code(), absl::StatusCode::kInternal);
}

TEST(Proto, BytesThatAreNoGraph) {
  const absl::Status status = FromProtoBytes("graph @g() {}").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Message(status), "graph proto: 13 bytes that are not a serialised graph");
}

// One broken field at a time; each must be noticed, with its own message.
struct BrokenProto {
  const char* what;
  void (*change)(GraphProto&);
  const char* message;
};

NodeProto& NodeNamed(GraphProto& proto, const std::string& name) {
  for (NodeProto& node : *proto.mutable_nodes()) {
    if (node.name() == name) return node;
  }
  ADD_FAILURE() << name;
  return *proto.mutable_nodes(0);
}

AttributeProto& AttributeNamed(NodeProto& node, const std::string& name) {
  for (AttributeProto& attribute : *node.mutable_attributes()) {
    if (attribute.name() == name) return attribute;
  }
  ADD_FAILURE() << name;
  return *node.mutable_attributes(0);
}

const BrokenProto kBrokenProtos[] = {
    {"no version", [](GraphProto& p) { p.clear_version(); }, "version 0; this build reads 1 to 1"},
    {"newer version", [](GraphProto& p) { p.set_version(2); },
     "version 2; this build reads 1 to 1"},
    {"unknown op", [](GraphProto& p) { NodeNamed(p, "m").set_op("relux"); },
     "node 6: \"relux\": no such op"},
    {"name with a space", [](GraphProto& p) { NodeNamed(p, "m").set_name("m m"); },
     "node 6: test_mix: name \"m m\" is malformed or used twice"},
    {"name used twice", [](GraphProto& p) { NodeNamed(p, "m").set_name("x"); },
     "node 6: test_mix: name \"x\" is malformed or used twice"},
    {"input of a later node",
     [](GraphProto& p) { NodeNamed(p, "m").mutable_inputs(0)->set_node(6); },
     "node 6: value of node 6; expected an earlier node, 0..5"},
    {"output out of range",
     [](GraphProto& p) { NodeNamed(p, "m").mutable_inputs(0)->set_output(2); },
     "node 6: output 2 of test_two(%a), which has 2"},
    {"missing input", [](GraphProto& p) { NodeNamed(p, "m").mutable_inputs()->RemoveLast(); },
     "test_mix(%m): got 1 input; expected 2 to 3 (a, b, c)"},
    {"required attribute absent", [](GraphProto& p) { NodeNamed(p, "m").clear_attributes(); },
     "node 6: test_mix(%m): attribute k is absent; expected int"},
    {"unknown attribute",
     [](GraphProto& p) { AttributeNamed(NodeNamed(p, "m"), "k").set_name("q"); },
     "node 6: test_mix(%m): has no attribute \"q\"; expected k"},
    {"attribute twice",
     [](GraphProto& p) {
       NodeProto& m = NodeNamed(p, "m");
       *m.add_attributes() = m.attributes(0);
     },
     "node 6: test_mix(%m): attribute \"k\" is given twice"},
    {"attribute of another type",
     [](GraphProto& p) { AttributeNamed(NodeNamed(p, "m"), "k").set_string_value("3"); },
     "node 6: test_mix(%m): attribute k is string \"3\"; expected int"},
    {"attribute without value",
     [](GraphProto& p) { AttributeNamed(NodeNamed(p, "m"), "k").clear_value(); },
     "node 6: test_mix(%m): attribute \"k\": no value"},
    {"tensor too short",
     [](GraphProto& p) {
       AttributeNamed(NodeNamed(p, "c"), "value").mutable_tensor()->mutable_data()->pop_back();
     },
     "node 3: constant(%c): attribute \"value\": tensor f32[3] has 11 bytes; expected 12"},
    {"bool that is 2",
     [](GraphProto& p) {
       (*AttributeNamed(NodeNamed(p, "s"), "value").mutable_tensor()->mutable_data())[1] = 2;
     },
     "node 4: constant(%s): attribute \"value\": tensor bool[5] holds a byte that is not 0 or 1"},
    {"dtype out of range",
     [](GraphProto& p) {
       NodeNamed(p, "m").mutable_outputs(0)->set_dtype(static_cast<DTypeProto>(99));
     },
     "node 6: unknown dtype number 99"},
    {"negative extent",
     [](GraphProto& p) { NodeNamed(p, "m").mutable_outputs(0)->set_dims(0, -1); }, "node 6: "},
    {"type that inference does not give",
     [](GraphProto& p) { NodeNamed(p, "m").mutable_outputs(0)->set_dims(0, 3); },
     "test_mix(%m): output 0 is f32[3]; inference gives f32[2]"},
    {"layout of rank 1",
     [](GraphProto& p) { NodeNamed(p, "m").mutable_outputs(0)->set_layout(LAYOUT_CHANNELS_LAST); },
     "node 6: layout nhwc of f32[2]; expected rank 4"},
    {"unknown layout",
     [](GraphProto& p) {
       NodeNamed(p, "m").mutable_outputs(0)->set_layout(static_cast<LayoutProto>(99));
     },
     "node 6: unknown layout number 99"},
    {"inputs without end",
     [](GraphProto& p) {
       NodeProto& m = NodeNamed(p, "m");
       for (int i = 0; i < 65535; ++i) *m.add_inputs() = m.inputs(0);
     },
     "node 6: test_mix(%m): got 65537 inputs; expected at most 65536"},
    {"attributes without end",
     [](GraphProto& p) {
       NodeProto& m = NodeNamed(p, "m");
       for (int i = 0; i < 256; ++i) *m.add_attributes() = m.attributes(0);
     },
     "node 6: test_mix(%m): got 257 attributes; expected at most 256"},
    {"line out of range", [](GraphProto& p) { NodeNamed(p, "m").set_line(0xffffffffu); },
     "node 6: test_mix(%m): line 4294967295"},
    {"amp class", [](GraphProto& p) { NodeNamed(p, "a").mutable_amp()->clear_amp_class(); },
     "node 5: test_two(%a): unknown AMP class number 0"},
    {"amp request", [](GraphProto& p) { NodeNamed(p, "a").set_amp_request(2); },
     "node 5: test_two(%a): AMP request 2; expected -1, 0 or 1"},
    {"variable twice", [](GraphProto& p) { *p.add_variables() = p.variables(0); },
     "variable \"gone\" is declared twice"},
    {"variable without name", [](GraphProto& p) { p.mutable_variables(0)->clear_name(); },
     "variable \"\": expected a name of 1 to 1048576 bytes"},
    {"variable kind", [](GraphProto& p) { p.mutable_variables(0)->clear_kind(); },
     "variable \"gone\": unknown kind number 0"},
    {"variable initialiser", [](GraphProto& p) { p.mutable_variables(0)->set_init("zeros"); },
     "variable \"gone\": initialiser \"zeros\"; "
     "expected constant(a), uniform(lower,upper) or normal(mean,deviation)"},
    {"variable not declared", [](GraphProto& p) { p.mutable_variables()->RemoveLast(); },
     "variable(%w): variable \"fc.weight\" is not declared"},
    {"output of no node",
     [](GraphProto& p) { p.mutable_outputs(0)->mutable_value()->set_node(99); },
     "output: value of node 99; expected an earlier node, 0..9"},
};

TEST(Proto, EveryBrokenFieldIsAnError) {
  for (const BrokenProto& broken : kBrokenProtos) {
    GraphProto proto = Stored();
    broken.change(proto);
    const absl::Status status = Read(proto);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << broken.what << ": " << status;
    EXPECT_EQ(Message(status).find(std::string("graph proto: ") + broken.message), 0u)
        << broken.what << ": " << status;
  }
  EXPECT_TRUE(Read(Stored()).ok());
}

}  // namespace
}  // namespace halftone::ir
