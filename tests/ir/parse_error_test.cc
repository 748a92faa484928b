// What the parser says about bad text: one line of text, one message with its position.
#include <gtest/gtest.h>

#include "halftone/tests/ir/test_ops.h"

namespace halftone::ir {
namespace {

struct BadText {
  const char* text;
  const char* message;
};

const BadText kBadTexts[] = {
    {"", "line 1, column 1: got end of text; expected graph"},
    {"grap @g() {}", "line 1, column 1: got 'grap'; expected graph"},
    {"graph g() {}", "line 1, column 7: got 'g'; expected @name"},
    {"graph @g) {}", "line 1, column 9: got ')'; expected '('"},
    {"graph @g() {", "line 1, column 13: got end of text; expected an op"},
    {"graph @g() {} x", "line 1, column 15: got 'x'; expected end of text"},
    {"graph @g() {\n  \x01\n}", "line 2, column 3: unexpected character \"\\x01\""},
    {"graph @g(%x) {}", "line 1, column 12: got ')'; expected ':'"},
    {"graph @g(%x: f31[2]) {}",
     "line 1, column 14: got 'f31'; expected a dtype (f64 f32 f16 bf16 i64 i32 u8 bool)"},
    {"graph @g(%x: f32[2], %x: f32[2]) {}", "line 1, column 22: %x is defined twice"},
    {"graph @g(%x: f32[2] {}", "line 1, column 22: got '}'; expected nhwc or nchw16c"},
    {"graph @g(%x: f32[1,16,2,2]{plain}) {}",
     "line 1, column 28: got 'plain'; expected nhwc or nchw16c"},
    {"graph @g(%x: f32[1,24,2,2]{nchw16c}) {}",
     "line 1, column 27: layout nchw16c of f32[1,24,2,2]; expected a multiple of 16 channels"},
    {"graph @g(%x: f32[2]{nhwc}) {}", "line 1, column 20: layout nhwc of f32[2]; expected rank 4"},
    {"graph @g(%x \"\": f32[2]) {}",
     "line 1, column 10: input(%x): attribute name is empty; expected a name"},
    {"graph @g(%x: f32[1,1,1,1,1,1,1,1,1]) {}", "line 1, column 17: rank over 8"},
    {"graph @g(%x: f32[1.5]) {}",
     "line 1, column 18: \"1.5\" is not a number; expected an integer"},
    {"graph @g(%x: f32[9223372036854775808]) {}",
     "line 1, column 18: 9223372036854775808 does not fit i64; expected an integer"},
    {"graph @g() { %y = relux(%x) }", "line 1, column 19: 'relux': no such op"},
    {"graph @g() { %y = test_pass(%x) }", "line 1, column 29: %x is not defined before this line"},
    {"graph @g() { %y = test_pass(%y) }", "line 1, column 29: %y is not defined before this line"},
    {"graph @g(%x: f32[2]) { %y = test_pass(%x#1) }",
     "line 1, column 39: %x#1: the node has 1 outputs"},
    {"graph @g(%x: f32[2]) { %a, %b = test_two(%x) %y = test_pass(%b#1) }",
     "line 1, column 61: %b#1: the node has 2 outputs"},
    {"graph @g(%x: f32[2]) {\n\n  %x = test_pass(%x)\n}", "line 3, column 3: %x is defined twice"},
    {"graph @g(%x: f32[2]) { %a, %a = test_two(%x) }", "line 1, column 28: %a is defined twice"},
    {"graph @g(%x: f32[2]) { %a, %b#1 = test_two(%x) }",
     "line 1, column 28: result %b#1; expected the first name and the position"},
    {"graph @g(%x: f32[2]) { %a, %b = test_pass(%x) }",
     "line 1, column 33: test_pass: got 2 results; it has 1 outputs"},
    {"graph @g(%x: f32[2]) { test_pass(%x) }",
     "line 1, column 24: test_pass: got 0 results; it has 1 outputs"},
    {"graph @g() { %r = test_root() %r = test_root() }", "line 1, column 31: %r is defined twice"},
    {"graph @g(%x: f32[2]) { %y = test_pass() }",
     "line 1, column 29: test_pass(%y): got 0 inputs; expected 1 (x)"},
    {"graph @g(%x: f32[2]) { %y = test_mix(%x, %x) }",
     "line 1, column 29: test_mix(%y): attribute k is absent; expected int"},
    {"graph @g(%x: i64[2]) { %y = test_mix(%x, %x) {k=1} }",
     "line 1, column 29: test_mix(%y): input 0 (a) is i64[2]; expected f64 f32"},
    {"graph @g(%x: f32[2], %z: f32[3]) { %y = test_mix(%x, %z) {k=1} }",
     "line 1, column 41: test_mix(%y): b is f32[3]; expected the shape of a, [2]"},
    {"graph @g() { %y = test_attrs() {q=1} }",
     "line 1, column 33: test_attrs: has no attribute 'q'"},
    {"graph @g() { %y = test_attrs() {i=1, i=1} }",
     "line 1, column 38: test_attrs: attribute i is given twice"},
    {"graph @g() { %y = test_attrs() {i=true} }",
     "line 1, column 35: got 'true'; expected an integer"},
    {"graph @g() { %y = test_attrs() {b=1} }",
     "line 1, column 35: got number 1; expected true or false"},
    {"graph @g() { %y = test_attrs() {f=\"1\"} }",
     "line 1, column 35: got string \"1\"; expected a number"},
    {"graph @g() { %y = test_attrs() {f=1e999} }", "line 1, column 35: 1e999 does not fit f64"},
    {"graph @g() { %y = test_attrs() {f=1.2.3} }", "line 1, column 35: malformed number"},
    {"graph @g() { %y = test_attrs() {s=x} }", "line 1, column 35: got 'x'; expected a string"},
    {"graph @g() { %y = test_attrs() {s=\"x} }",
     "line 1, column 35: the string has no end on its line"},
    {"graph @g() { %y = test_attrs() {s=\"\\q\"} }",
     "line 1, column 35: unknown escape in the string; expected \\\" \\\\ \\n \\t \\r \\xHH"},
    {"graph @g() { %y = test_attrs() {is=[1, 2} }", "line 1, column 41: got '}'; expected ']'"},
    {"graph @g() { %y = test_attrs() {t=full<f32[]>(1)} }",
     "line 1, column 35: got 'full'; expected dense, splat or file"},
    {"graph @g() { %y = constant {value=dense<f32[3]>(1, 2)} }",
     "line 1, column 53: got 2 elements; expected 3"},
    {"graph @g() { %y = constant {value=dense<f32[1]>(1, 2)} }",
     "line 1, column 35: more than 1 elements"},
    {"graph @g() { %y = constant {value=dense<i32[1]>(0.5)} }",
     "line 1, column 49: \"0.5\" is not a number"},
    {"graph @g() { %y = constant {value=dense<u8[1]>(256)} }",
     "line 1, column 48: 256 does not fit u8"},
    {"graph @g() { %y = constant {value=dense<f16[1]>(65520)} }",
     "line 1, column 49: 65520 does not fit f16"},
    {"graph @g() { %y = constant {value=dense<f32[1]>(1e39)} }",
     "line 1, column 49: 1e39 does not fit f32"},
    {"graph @g() { %y = constant {value=dense<f32[1]>(infinity)} }",
     "line 1, column 49: \"infinity\" is not a number"},
    {"graph @g() { %y = constant {value=dense<bool[1]>(2)} }",
     "line 1, column 50: \"2\" is not true or false"},
    {"graph @g() { %y = constant {value=dense<f32[1000000]>(0)} }",
     "line 1, column 35: expected 1000000 elements; the text ends before that"},
    {"graph @g() { %y = constant {value=splat<f32[100000000]>(0)} }",
     "line 1, column 35: splat constants of more than 268435456 bytes"},
    {"graph @g() { %y = constant {value=splat<f32[0]>(0)} }",
     "line 1, column 35: splat of no elements"},
    {"graph @g() { %y = constant {value=file<f32[1]>(\"0000000000000000.bin\")} }",
     "line 1, column 35: a file of constants, but no folder for it"},
    {"graph @g(%x: f32[2]) { %y = test_pass(%x) : f32[3] }",
     "line 1, column 45: test_pass(%y): output 0 is given as f32[3]; inference gives f32[2]"},
    {"graph @g(%x: f32[2]) { %y = test_pass(%x) : f32[2], f32[2] }",
     "line 1, column 45: test_pass(%y): got 2 types; it has 1 outputs"},
    {"graph @g() { %w = variable \"w\" }", "line 1, column 32: got '}'; expected ':'"},
    {"graph @g() { %w = variable \"w\" {kind=\"x\"} : f32[] }",
     "line 1, column 19: variable(%w): kind \"x\"; "
     "expected parameter, buffer, optimizer, scaler or counter"},
    {"graph @g() { variable \"w\" {init=\"ones\"} : f32[] }",
     "line 1, column 14: variable: initialiser \"ones\"; expected constant(a), "
     "uniform(lower,upper) or normal(mean,deviation)"},
    {"graph @g() { variable \"w\" : f32[] variable \"w\" : f32[] }",
     "line 1, column 35: variable \"w\" is declared twice"},
    {"graph @g() { %w = variable \"w\" : f32[] %v = variable \"w\" : f32[] }",
     "line 1, column 45: variable \"w\" is declared twice"},
    {"graph @g(%x: f32[2]) { commit \"w\" = %x }",
     "line 1, column 31: commit \"w\": the variable is not declared before this line"},
    {"graph @g(%x: f32[2]) { %w = variable \"w\" : f32[3] commit \"w\" = %x }",
     "line 1, column 51: commit \"w\": value %x is f32[2]; expected f32[3]"},
    {"graph @g(%x: f32[2]) { variable \"w\" : f32[2] commit \"w\" = %x commit \"w\" = %x }",
     "line 1, column 69: commit \"w\": the variable has a commit already"},
    {"graph @g() { %x = input() }",
     "line 1, column 19: input: expected in the header of the graph"},
    {"graph @g(%x: f32[2] \"s\") {}", "line 1, column 21: got string \"s\"; expected ')'"},
    {"graph @g(%x: f32[2] loc(\"f\":-1)) {}", "line 1, column 29: line number out of range"},
    {"graph @g(%x: f32[2] amp(maybe,f32,\"\")) {}",
     "line 1, column 25: got 'maybe'; expected allow, infer, clear or deny"},
    {"graph @g(%x: f32[2]) { return a=%x, a=%x }",
     "line 1, column 37: a second output called \"a\""},
    {"graph @g(%x: f32[2], %y \"x\": f32[2]) {}",
     "line 1, column 40: input(%y): a second input called \"x\""},
    {"graph @g() { %- = ", "line 1, column 19: got end of text; expected an op"},
    {"graph @g() { % = x() }", "line 1, column 14: expected a name after '%'"},
};

TEST(ParseError, SaysWhereAndWhat) {
  RegisterTestOps();
  for (const BadText& bad : kBadTexts) {
    const auto graph = Parse(bad.text);
    ASSERT_FALSE(graph.ok()) << bad.text;
    EXPECT_EQ(graph.status().code(), absl::StatusCode::kInvalidArgument) << bad.text;
    EXPECT_EQ(Message(graph.status()), bad.message) << bad.text;
  }
}

TEST(ParseError, NamesAndStringsAreBounded) {
  const std::string name(257, 'n');
  EXPECT_EQ(Message(Parse("graph @g(%" + name + ": f32[]) {}").status()),
            "line 1, column 10: the name is too long");
  const std::string text(size_t{2} << 20, 's');
  EXPECT_EQ(Message(Parse("graph @\"" + text + "\"() {}").status()),
            "line 1, column 8: the string is too long");
  const std::string digits(5000, '1');
  EXPECT_EQ(Message(Parse("graph @g(%x: f32[" + digits + "]) {}").status()),
            "line 1, column 18: the number is too long");
  const std::string word(257, 'w');
  EXPECT_EQ(Message(Parse("graph @g() { %y = " + word + "() }").status()),
            "line 1, column 19: the word has 257 bytes; expected at most 256");
}

// `before`, then one item with its comma more often than is allowed: the error is at the last
// comma.
void ExpectTooMany(const std::string& before, const std::string& item, size_t limit,
                   const std::string& what) {
  std::string text = before;
  for (size_t i = 0; i <= limit; ++i) text += item;
  const absl::Status status = Parse(text + item + " }").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status), Concat("line 1, column ", text.size(), ": ", what, limit));
}

TEST(ParseError, ListsAreBounded) {
  RegisterTestOps();
  ExpectTooMany("graph @g() { ", "%a,", 65536, "too many results; expected at most ");
  ExpectTooMany("graph @g(%x: f32[2]) { %y = test_many(", "%x,", 65536,
                "too many inputs; expected at most ");
  ExpectTooMany("graph @g(%x: f32[2]) { %y = test_many(%x) : ", "f32[2],", 65536,
                "too many types; expected at most ");
  ExpectTooMany("graph @g() { %y = test_attrs() {is=[", "1,", 1048576,
                "the list is too long; expected at most ");
}

// A hundred thousand statements of the kinds that could each scan what came before.
TEST(ParseError, LongTextsTakeLinearTime) {
  RegisterTestOps();
  std::string text = "graph @g(%x: f32[2]) {\n";
  for (int i = 0; i < 25000; ++i) {
    const std::string n = std::to_string(i);
    text += "test_root()\n%test_root_" + n + " = test_pass(%x)\nvariable \"" + n +
            "\" : f32[2]\ncommit \"" + n + "\" = %x\n";
  }
  const auto graph = Parse(text + "}");
  ASSERT_TRUE(graph.ok()) << graph.status();
  EXPECT_EQ((*graph)->nodes().size(), 75001u);
  EXPECT_EQ((*Parse(Print(**graph)))->Hash(), (*graph)->Hash());
}

}  // namespace
}  // namespace halftone::ir
