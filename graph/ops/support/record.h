// Makers for the parts of an op record.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "halftone/graph/ir/builder.h"
#include "halftone/graph/ir/op.h"

namespace halftone::ops {

// Registers a record of this tree; a refusal is a bug of ours and ends the program.
void AddOp(ir::OpRegistry& registry, ir::OpRecord record);

// AMP traits with one class for both low types; the reason is one clause. InferAcc also computes in
// f32 whatever the storage.
ir::AmpTrait Infer(std::string reason);
ir::AmpTrait InferAcc(std::string reason);
ir::AmpTrait Clear(std::string reason);
ir::AmpTrait Deny(std::string reason);
// Denied for f16, inferred for bf16 (which has f32's range); computes in f32.
ir::AmpTrait DenyF16(std::string reason);
// Runs in the dtype that arrives: nothing is cast on its account.
ir::AmpTrait Untouched(std::string reason, std::vector<int> ports);

// The family of ops that apply one formula to each element: name, one input per name in `inputs`
// with the same dtypes, output y, in place over any input, layout follows. Without inference.
ir::OpRecord ElementwiseOp(std::string name, std::vector<std::string> inputs, ir::DTypeSet dtypes,
                           std::string doc, std::string source, ir::AmpTrait amp);

// Why an op has no gradient (OpRecord::no_gradient), of more than one op.
inline constexpr char kFlat[] = "flat almost everywhere";
inline constexpr char kGivesWhole[] = "gives whole numbers or truth values";
inline constexpr char kAfterGradients[] = "comes after the gradients";
inline constexpr char kIsUpdate[] = "a step is not differentiated through its update";
inline constexpr char kMadeLate[] = "is made once everything is differentiated";
inline constexpr char kNoSecond[] = "its second derivatives are not written";

// Attributes without and with a default.
ir::AttrSpec Required(std::string name, ir::AttrType type, std::string doc);
ir::AttrSpec Optional(std::string name, ir::AttrValue default_value, std::string doc);
// The attributes `tf32` and `deterministic` of ops that libraries do; apply-numerics sets them.
ir::AttrSpec Tf32Attr();
ir::AttrSpec DeterministicAttr();
// The attribute `widened` of ops that libraries do in 16 bit or in f32; widen-operands sets it.
ir::AttrSpec WidenedAttr();
// Whether it is set on `node`.
bool IsWidened(const ir::Node& node);
// The attribute `packed` of products, whose input 1 are mostly weights; pack-weights sets it.
ir::AttrSpec PackedAttr();
bool IsPacked(const ir::Node& node);
// The attribute `out` of ops that may leave 16-bit input in f32.
ir::AttrSpec OutAttr();

// What run-time indices stay below (OpRecord::index_extent): the extent of operand 0 along attribute
// `axis`; the value of attribute `name`.
std::function<int64_t(const ir::Node&)> ExtentAlongAxis();
std::function<int64_t(const ir::Node&)> ExtentInAttr(std::string name);

// Costs: bytes are all inputs and outputs; flops count elements of output 0 or of input 0.
std::function<ir::Cost(const ir::Node&)> FlopsPerOutput(double flops);
std::function<ir::Cost(const ir::Node&)> FlopsPerInput(double flops);

}  // namespace halftone::ops
