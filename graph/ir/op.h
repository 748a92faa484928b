// OpRecord: everything Halftone knows about an operator, in one place. What holds for a kind of ops
// (dtypes, layouts, mixed precision, cost) is asked of the record. Names are compared only where
// one op is meant: the four of graph/ops/structure.cc, a marker by the pass that lowers it, casts
// and moves by the rules about them, and by a kernel that serves several ops.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "halftone/core/status.h"
#include "halftone/graph/ir/attribute.h"
#include "halftone/graph/ir/types.h"
#include "halftone/graph/ir/value_range.h"

namespace halftone::ir {

class Node;
class Graph;
class Builder;
class Expr;
struct GradContext;

// A set of dtypes, one bit each.
class DTypeSet {
 public:
  constexpr DTypeSet() = default;
  constexpr DTypeSet(std::initializer_list<DType> dtypes) {
    for (DType d : dtypes) bits_ |= 1u << static_cast<int>(d);
  }
  constexpr bool Contains(DType d) const { return (bits_ >> static_cast<int>(d)) & 1u; }
  // "f64 f32 f16 bf16"
  std::string ToString() const;

 private:
  uint32_t bits_ = 0;
};
inline constexpr DTypeSet kFloats{DType::kF64, DType::kF32, DType::kF16, DType::kBF16};
inline constexpr DTypeSet kNumeric{DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                                   DType::kI64, DType::kI32, DType::kU8};
inline constexpr DTypeSet kIndices{DType::kI64, DType::kI32};
inline constexpr DTypeSet kAnyDType{DType::kF64, DType::kF32, DType::kF16, DType::kBF16,
                                    DType::kI64, DType::kI32, DType::kU8,  DType::kBool};
// Also the types that only casts, state and scaled matrix products know.
inline constexpr DTypeSet kStorable{DType::kF64,    DType::kF32,   DType::kF16, DType::kBF16,
                                    DType::kI64,    DType::kI32,   DType::kU8,  DType::kBool,
                                    DType::kF8E4M3, DType::kF8E5M2};

struct InputSpec {
  std::string name;
  DTypeSet dtypes = kFloats;
  std::string doc;
  bool optional = false;  // only trailing inputs may be absent
  bool variadic = false;  // only the last input; zero or more
};
struct OutputSpec {
  std::string name;
  std::string doc;
};
struct AttrSpec {
  std::string name;
  AttrType type;
  std::optional<AttrValue> default_value;  // absent: the attribute is required
  std::string doc;
};

// What inference and checks see of a node that does not exist yet.
struct InferContext {
  const std::string& op;  // op name and, where known, node name, for messages: "softmax(%12)"
  const std::vector<ValueType>& inputs;
  const Attributes& attrs;
};

// How an op behaves under mixed precision. Mandatory for every op; the class may differ between f16
// and bf16.
enum class AmpClass : uint8_t {
  kAllow,  // 16 bit pays: matmul, convolution
  kInfer,  // 16 bit if the neighbours are: norms, softmax, gelu, add, mul
  kClear,  // the dtype does not matter: relu, max pool, reshape, concat
  kDeny,   // needs f32's range: exp, pow, sum, losses
};
const char* Name(AmpClass amp_class);  // "allow", ...
std::optional<AmpClass> ParseAmpClass(const std::string& name);

// A class that depends on where the node stands, e.g. mean as the loss.
struct AmpRefinement {
  AmpClass amp_class;
  std::string reason;
};

// Operands whose rounding the op enlarges: log near 1, a divisor near 0, 1 - p. The op runs in f32,
// and so does what makes them.
struct AmpMagnified {
  std::vector<int> inputs;
  std::string reason;  // one clause
  // The op has a pole at 0, near which f16 has few digits or none. What is taken from a matmul is
  // then computed in f32 by the matmul too.
  bool pole = false;
};

struct AmpTrait {
  AmpClass f16 = AmpClass::kDeny;
  AmpClass bf16 = AmpClass::kDeny;
  std::string reason = {};  // one clause; shown by halftone_dump --amp
  // Ports that stay f32 in a 16-bit node (gamma, statistics, tables).
  std::vector<int> keep_f32_inputs = {};
  std::vector<int> keep_f32_outputs = {};
  // Input ports that must share a dtype with each other (and with output 0): any f32 makes all f32.
  // Variadic: list port 0..n-1 by leaving the list empty and setting all_inputs_share.
  std::vector<int> same_dtype_inputs = {};
  bool all_inputs_share = false;
  bool accumulates_in_f32 = false;  // computes inside in f32 whatever the storage
  bool cast_output_only = false;    // embedding: rows are cast, the table is not
  // Inputs of which it reads 16-bit elements as their copy in f32: it computes as on that copy, and
  // rounds an output of their dtype once. The copy is then not made (clean-up-casts).
  std::vector<int> widens_inputs = {};
  // A sum that may go on through a network, as along a residual stream: where an operand of the
  // output's shape, parameters aside, is computed in f32, so is it, or each block would round the
  // sum of all before. Its 16-bit readers read a cast.
  bool running_sum = false;
  std::function<std::optional<AmpRefinement>(const Node&, DType low)> refine = {};  // may be empty
  // By the ranges of the inputs; empty, or nothing: no rounding is enlarged.
  std::function<std::optional<AmpMagnified>(const Node&, DType low,
                                            const std::vector<ValueRange>& inputs)>
      magnifies = {};
  // Of a product of matrices: the attributes of the f8_matmul that computes it from its operands in
  // 8 bits. Empty: it is never computed in 8 bits.
  std::function<Attributes(const Node&)> in_f8 = {};
};

// What a fuse pass may do with the op.
enum class FusionClass : uint8_t { kOpaque, kElementwise, kReduction, kContraction };

// How the op relates to storage order (see Layout).
enum class LayoutClass : uint8_t {
  // Reads and writes plain layouts.
  kPlainOnly,
  // Elementwise: any layout, the same for all rank-4 operands of the output's shape and the output.
  kFollows,
  // The ports in channels_last_inputs/outputs are best channels-last: convolution, pooling, batch
  // norm.
  kChannelsLast,
};
struct LayoutTrait {
  LayoutClass kind = LayoutClass::kPlainOnly;
  std::vector<int> channels_last_inputs;
  std::vector<int> channels_last_outputs;
  // Whether all of the ports that may be channels-last may lie in blocks of channels together, as
  // Layout::kChannelBlocks.
  bool channel_blocks = false;
};

// Output `output` may be written over input `input` when nothing else reads that input later; for
// types of which element i lies in the same bytes.
struct InPlacePair {
  int input;
  int output;
};

struct Cost {
  double flops = 0;
  double bytes = 0;  // read + written
};

struct OpRecord {
  std::string name;    // snake_case
  std::string doc;     // formula and shapes
  std::string source;  // paper with equation, or library page

  std::vector<InputSpec> inputs;
  std::vector<OutputSpec> outputs;
  std::vector<AttrSpec> attrs;

  // Types of the outputs. The builder has already checked counts, dtype sets, attribute names and
  // types. Layouts of the result are set by the layout pass; inference leaves kPlain except where
  // LayoutClass::kFollows copies input 0's.
  std::function<absl::StatusOr<std::vector<ValueType>>(const InferContext&)> infer;

  AmpTrait amp;
  // Where the elements of output 0 lie, by the ranges of the inputs. Empty: of an op whose dtype does
  // not matter (AmpClass::kClear) where those of its float inputs lie, which they are taken from; of
  // others unknown.
  std::function<ValueRange(const Node&, const std::vector<ValueRange>& inputs)> range;
  FusionClass fusion = FusionClass::kOpaque;
  LayoutTrait layout;
  std::vector<InPlacePair> in_place;
  // Empty: flops = elements of output 0, bytes = all inputs and outputs.
  std::function<Cost(const Node&)> cost;

  // Adds the gradient formula; reads ctx.in(i), ctx.out(i), ctx.dy(i); calls ctx.set_dx(i, expr).
  // Empty and no decomposition: gradients stop there, and `no_gradient` says why.
  std::function<void(GradContext&)> gradient;
  // Why it has none, a clause: "gives whole numbers or truth values".
  std::string no_gradient = {};
  // Names of ops the gradient emits; the AMP pass asks whether the target has kernels for them.
  std::vector<std::string> gradient_ops;
  // Of a gradient most of whose rows are 0: the op that gives the others and their ids, from the same
  // operands and attributes. It stands in where the node's attribute `sparse` is true and nothing but
  // updates of rows reads the gradient. Empty: none.
  std::string rows_op;
  // The op in simpler ops: one Expr per output. Fallback, oracle in f64, and gradient where none is
  // given.
  std::function<std::vector<Expr>(Builder&, const std::vector<Expr>& inputs, const Attributes&)>
      decompose;

  bool is_random = false;     // never merged or folded
  bool communicates = false;  // an exchange with other processes: runs once a step, on all of them
                              // in the same order; never merged, folded or run again
  bool has_side_effect = false;  // a root: commit and markers; never removed by DCE
  bool is_marker = false;        // removed by the pass that lowers it; no kernel may exist

  // Of an op with run-time indices (labels, ids) at port 1: they are in range from 0 up to this; the
  // kernel raises a fault for others, unless they equal the attribute ignore_index. Empty: the op
  // cannot fault.
  std::function<int64_t(const Node&)> index_extent;
  bool can_fault() const { return static_cast<bool>(index_extent); }

  bool is_variadic() const { return !inputs.empty() && inputs.back().variadic; }

  std::string ToCatalogue() const;  // the section of docs/operators.md
};

// All known ops by name. One process-wide registry; built-in ops are registered at first use
// through the list that CMake generates, so nothing depends on static initialisers.
class OpRegistry {
 public:
  static OpRegistry& Global();

  // Errors (a status, since ops may come from outside the tree): name taken or malformed, no
  // inference, missing AMP reason, a port in a trait out of range, non-trailing optional input.
  absl::Status Register(OpRecord record);
  const OpRecord* Find(const std::string& name) const;
  // In name order.
  std::vector<const OpRecord*> All() const;

 private:
  std::map<std::string, std::unique_ptr<OpRecord>> ops_;
};

// Public entry for ops from outside the tree. Call before the first graph that uses it. Not
// thread-safe.
absl::Status RegisterOp(OpRecord record);

// Defined in the generated list.
void RegisterBuiltinOps(OpRegistry& registry);

}  // namespace halftone::ir
