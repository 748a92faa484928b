// LSTM and GRU: one op of ours is one direction, from the gates that the input gives on.
#include <algorithm>

#include "absl/strings/match.h"
#include "halftone/graph/onnx/node_export.h"
#include "halftone/graph/onnx/rules/formulas.h"
#include "halftone/graph/ops/support/infer.h"

namespace halftone::onnx {
namespace {

// Where the gates of one side stand on the other. ONNX: i o f c and z r h; here: i f g o and r z n.
const Ints kLstmImport = {0, 2, 3, 1}, kLstmExport = {0, 3, 1, 2};
const Ints kGruImport = {1, 0, 2}, kGruExport = {1, 0, 2};

// A node of ONNX: the extents of its operands, and how they lie.
struct Recurrence {
  int64_t steps = 1, batch = 1, inputs = 1, hidden = 1, directions = 1;
  bool backwards = false;    // the first direction
  bool batch_first = false;  // x and the states
  Ints gates;

  int64_t rows() const { return static_cast<int64_t>(gates.size()) * hidden; }
  bool Reverse(int64_t direction) const { return backwards || direction == 1; }
};

void ExpectShape(NodeImport& n, int i, const char* name, const Ints& expected) {
  if (n.ok() && n.shape(i) != expected) {
    n.FailWith(InvalidArgument(name, " is ", n.in(i).shape(), "; expected ", Shape(expected)));
  }
}

void ReadDirection(NodeImport& n, Recurrence& r) {
  const std::string direction = n.String("direction", "forward");
  r.backwards = direction == "reverse";
  r.directions = direction == "bidirectional" ? 2 : 1;
  if (direction != "forward" && !r.backwards && r.directions == 1) {
    n.Fail("direction \"", direction, "\" is not covered");
  }
}

// Sigmoid for gates and Tanh for what they let through, in every direction.
void CheckActivations(NodeImport& n, size_t directions, const std::vector<std::string>& expected) {
  if (!n.has_attr("activations")) return;
  const auto* given = n.Raw<std::vector<std::string>>("activations");
  bool same = given != nullptr && given->size() == directions * expected.size();
  for (size_t i = 0; same && i < given->size(); ++i) {
    same = absl::EqualsIgnoreCase((*given)[i], expected[i % expected.size()]);
  }
  if (!same) n.Fail("activations other than the usual ones are not covered");
}

// Operand `i` holds how many steps each sequence has: all of them, or it is not covered.
void CheckLengths(NodeImport& n, int i, const Recurrence& r) {
  if (!n.has(i)) return;
  const Ints lengths = n.StaticInts(i);
  if (std::any_of(lengths.begin(), lengths.end(), [&](int64_t t) { return t != r.steps; })) {
    n.Fail("sequences of different lengths are not covered");
  }
}

Recurrence ReadRecurrence(NodeImport& n, const Ints& gates,
                          const std::vector<std::string>& activations) {
  Recurrence r;
  r.gates = gates;
  ReadDirection(n, r);
  r.batch_first = n.Bool("layout", false);
  CheckActivations(n, static_cast<size_t>(r.directions), activations);
  const Ints x = n.shape(0), w = n.shape(2);
  if (n.ok() && (x.size() != 3 || w.size() != 3)) n.Fail("X and R must have rank 3");
  if (!n.ok()) return r;
  r.steps = x[r.batch_first ? 1 : 0];
  r.batch = x[r.batch_first ? 0 : 1];
  r.inputs = x[2];
  r.hidden = w[2];
  if (r.steps < 1) n.Fail("no step");
  if (n.Int("hidden_size", r.hidden) != r.hidden) {
    n.Fail("hidden_size is not the last extent of R, ", r.hidden);
  }
  ExpectShape(n, 1, "W", {r.directions, r.rows(), r.inputs});
  ExpectShape(n, 2, "R", {r.directions, r.rows(), r.hidden});
  if (n.has(3)) ExpectShape(n, 3, "B", {r.directions, 2 * r.rows()});
  CheckLengths(n, 4, r);
  return r;
}

// Rows [first, first + rows()) of one direction of an operand, with the gates in our order.
Expr GateRows(NodeImport& n, int i, const Recurrence& r, int64_t direction, int64_t first = 0) {
  Ints extents = n.shape(i);
  extents.erase(extents.begin());
  const Expr all = Reshape(Slice(n.in(i), 0, direction, direction + 1), extents);
  Exprs parts;
  for (const int64_t gate : r.gates) {
    const int64_t row = first + gate * r.hidden;
    parts.push_back(Slice(all, 0, row, row + r.hidden));
  }
  return Joined(parts, 0);
}

// The state before the first step: [B,H] of one direction.
Expr StateOf(NodeImport& n, int i, const Recurrence& r, int64_t direction) {
  const Ints extents = {r.batch, r.hidden};
  if (!n.has(i)) return Broadcast(n.b.ScalarLike(n.in(0), 0), extents);
  const int axis = r.batch_first ? 1 : 0;
  return Reshape(Slice(n.in(i), axis, direction, direction + 1), extents);
}

// The states of all directions, each [B,H], as ONNX lays them out.
Expr JoinedStates(const Exprs& states, const Recurrence& r) {
  Exprs parts;
  for (const Expr& state : states) {
    parts.push_back(
        Reshape(state, r.batch_first ? Ints{r.batch, 1, r.hidden} : Ints{1, r.batch, r.hidden}));
  }
  return Joined(parts, r.batch_first ? 1 : 0);
}

// h [T,B,H] of all directions as Y, and the last of each as Y_h.
Exprs SequenceOutputs(const Exprs& hs, const Recurrence& r) {
  Exprs all, last;
  for (size_t d = 0; d < hs.size(); ++d) {
    all.push_back(Reshape(hs[d], {r.steps, 1, r.batch, r.hidden}));
    const int64_t at = r.Reverse(static_cast<int64_t>(d)) ? 0 : r.steps - 1;
    last.push_back(Reshape(Slice(hs[d], 0, at, at + 1), {r.batch, r.hidden}));
  }
  const Expr y = Joined(all, 1);
  return {r.batch_first ? Transpose(y, {2, 0, 1, 3}) : y, JoinedStates(last, r)};
}

Expr StepsFirst(NodeImport& n, const Recurrence& r) {
  return r.batch_first ? Transpose(n.in(0), {1, 0, 2}) : n.in(0);
}

void CheckStates(NodeImport& n, int i, const char* name, const Recurrence& r) {
  if (!n.has(i)) return;
  ExpectShape(n, i, name,
              r.batch_first ? Ints{r.batch, r.directions, r.hidden}
                            : Ints{r.directions, r.batch, r.hidden});
}

Exprs ImportLstm(NodeImport& n) {
  const Recurrence r = ReadRecurrence(n, kLstmImport, {"Sigmoid", "Tanh", "Tanh"});
  CheckStates(n, 5, "initial_h", r);
  CheckStates(n, 6, "initial_c", r);
  if (n.has(7)) n.Fail("peepholes are not covered");
  if (n.Bool("input_forget", false)) n.Fail("input_forget is not covered");
  if (!n.ok()) return {};
  Exprs hs, cs;
  for (int64_t d = 0; d < r.directions; ++d) {
    Exprs linear = {StepsFirst(n, r), GateRows(n, 1, r, d)};
    if (n.has(3)) linear.push_back(GateRows(n, 3, r, d) + GateRows(n, 3, r, d, r.rows()));
    const Expr c0 = StateOf(n, 6, r, d);
    const Exprs out = n.b.Make(
        "lstm",
        {n.b.Op("linear", linear), GateRows(n, 2, r, d), StateOf(n, 5, r, d), ops::Widened(c0)},
        {{"reverse", r.Reverse(d)}});
    if (!n.ok()) return {};
    hs.push_back(out[0]);
    cs.push_back(ops::CastTo(out[1], n.dtype(0)));
  }
  Exprs y = SequenceOutputs(hs, r);
  y.push_back(JoinedStates(cs, r));
  return y;
}

Exprs ImportGru(NodeImport& n) {
  const Recurrence r = ReadRecurrence(n, kGruImport, {"Sigmoid", "Tanh"});
  CheckStates(n, 5, "initial_h", r);
  if (!n.Bool("linear_before_reset", false)) n.Fail("linear_before_reset = 0 is not covered");
  if (!n.ok()) return {};
  Exprs hs;
  for (int64_t d = 0; d < r.directions; ++d) {
    Exprs linear = {StepsFirst(n, r), GateRows(n, 1, r, d)};
    if (n.has(3)) linear.push_back(GateRows(n, 3, r, d));
    Exprs operands = {n.b.Op("linear", linear), GateRows(n, 2, r, d), StateOf(n, 5, r, d)};
    if (n.has(3)) operands.push_back(ops::Widened(GateRows(n, 3, r, d, r.rows())));
    const Exprs out = n.b.Make("gru", operands, {{"reverse", r.Reverse(d)}});
    if (!n.ok()) return {};
    hs.push_back(out[0]);
  }
  return SequenceOutputs(hs, r);
}

// What ONNX's node reads where our op reads gates.
struct GateSource {
  std::string x, w, b;  // b: "" for none
};

// Rows in ONNX's order of gates, with an axis of one direction in front: [1, rows, ...].
std::string ExportedRows(NodeExport& n, const std::string& rows, const Ints& order,
                         int64_t hidden) {
  Tensor indices =
      Tensor::Empty(DType::kI64, Shape{1, static_cast<int64_t>(order.size()) * hidden});
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    indices.set(i,
                static_cast<double>(order[static_cast<size_t>(i / hidden)] * hidden + i % hidden));
  }
  return n.Add("Gather", {rows, n.Constant(indices)}, {{"axis", int64_t{0}}});
}

// Where a linear made the gates, what it reads; else the gates, through a unit matrix.
GateSource SourceOfGates(NodeExport& n, const Ints& order, int64_t hidden) {
  NodeExport source = n.Source(0);
  if (source.node.op().name == "linear") {
    GateSource gates{source.in(0), ExportedRows(n, source.in(1), order, hidden), ""};
    if (source.num_inputs() > 2) {
      gates.b = ExportedRows(n, source.InAs(2, n.dtype()), order, hidden);
    }
    return gates;
  }
  const int64_t rows = n.shape(0)[2];
  const std::string zeros = n.Add("ConstantOfShape", {n.Ints({rows, rows})},
                                  {{"value", Tensor::Zeros(n.dtype(), Shape{1})}});
  return {n.in(0), ExportedRows(n, n.Add("EyeLike", {zeros}), order, hidden), ""};
}

// B [1, 2 rows]: what is added to the input's gates and what to the state's, "" being none.
std::string BothBiases(NodeExport& n, const std::string& input, const std::string& state) {
  if (input.empty() && state.empty()) return "";
  const Tensor zeros = Tensor::Zeros(n.dtype(), Shape{1, n.shape(0)[2]});
  return n.Add(
      "Concat",
      {input.empty() ? n.Constant(zeros) : input, state.empty() ? n.Constant(zeros) : state},
      {{"axis", int64_t{1}}});
}

ir::Attributes RecurrenceAttributes(const NodeExport& n, int64_t hidden) {
  return {{"hidden_size", hidden},
          {"direction", std::string(n.attrs().GetBool("reverse") ? "reverse" : "forward")}};
}

std::string WithDirection(NodeExport& n, const std::string& state) {
  return n.Add("Unsqueeze", {state, n.Ints({0})});
}

void ExportLstm(NodeExport& n) {
  if (n.num_inputs() > 4) {
    n.Fail("ONNX's LSTM has no projection");
    return;
  }
  const int64_t hidden = n.shape(3)[1];
  const GateSource gates = SourceOfGates(n, kLstmExport, hidden);
  const std::string w = ExportedRows(n, n.in(1), kLstmExport, hidden);
  const Names y = n.AddAll(3, "LSTM",
                           {gates.x, gates.w, w, BothBiases(n, gates.b, ""), "",
                            WithDirection(n, n.in(2)), WithDirection(n, n.InAs(3, n.dtype()))},
                           RecurrenceAttributes(n, hidden));
  n.Give("Squeeze", {y[0], n.Ints({1})});
  const std::string c = n.dtype() == n.type(3).dtype ? y[2] : n.Cast(y[2], n.type(3).dtype);
  n.GiveOutput(1, "Squeeze", {c, n.Ints({0})});
}

void ExportGru(NodeExport& n) {
  const int64_t hidden = n.shape(2)[1];
  const GateSource gates = SourceOfGates(n, kGruExport, hidden);
  const std::string w = ExportedRows(n, n.in(1), kGruExport, hidden);
  const std::string bias =
      n.num_inputs() > 3 ? ExportedRows(n, n.InAs(3, n.dtype()), kGruExport, hidden) : "";
  ir::Attributes attrs = RecurrenceAttributes(n, hidden);
  attrs.Set("linear_before_reset", int64_t{1});
  const std::string y = n.Add(
      "GRU", {gates.x, gates.w, w, BothBiases(n, gates.b, bias), "", WithDirection(n, n.in(2))},
      std::move(attrs));
  n.Give("Squeeze", {y, n.Ints({1})});
}

}  // namespace

void AddRecurrenceRules(Rules& rules) {
  rules.Import("LSTM", "linear, lstm", ImportLstm,
               "peepholes; clip; input_forget; other activations; sequences of different lengths");
  rules.Export("lstm", "LSTM", ExportLstm);
  rules.Import("GRU", "linear, gru", ImportGru,
               "linear_before_reset = 0; clip; other activations; sequences of different lengths");
  rules.Export("gru", "GRU", ExportGru);
}

}  // namespace halftone::onnx
