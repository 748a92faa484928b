// Functions over builder expressions that the rules of import share. Extents come from models: they
// go to ops as attributes, whose inference checks them. A poison argument gives poison.
#pragma once

#include <vector>

#include "halftone/graph/onnx/node_import.h"
#include "halftone/graph/ops/support/expr.h"

namespace halftone::onnx {

using ir::Expr;

// Of a poison value kMaxRank extents of 1.
Ints ExtentsOf(Expr x);
DType DTypeOf(Expr x);
// Of extents of one valid shape, or some of them.
int64_t Product(const Ints& extents);
Ints Range(int64_t begin, int64_t end);

Expr Reshape(Expr x, const Ints& extents);
Expr Broadcast(Expr x, const Ints& extents);
Expr Transpose(Expr x, const Ints& perm);
// [start, limit) of one axis.
Expr Slice(Expr x, int64_t axis, int64_t start, int64_t limit);
Expr Joined(const Exprs& parts, int64_t axis);
Expr Pad(Expr x, const Ints& before, const Ints& after, double value = 0);
// "sum", "mean" or "max" over exactly these axes: none gives x.
Expr Reduce(const char* op, Expr x, const Ints& axes, bool keepdim = true);
// The smallest element over these axes.
Expr ReduceMin(Expr x, const Ints& axes, bool keepdim = true);
// -x, or what has the opposite order where the dtype has no sign.
Expr Reversed(Expr x);

// 0, 1, ..., n - 1 along the axis that is `from_end` axes before the last. See
// NodeImport::Spend.
Expr Counting(NodeImport& n, int64_t count, DType dtype, int from_end = 0);
// A vector [C] as [1, C, 1, ...] of `rank` axes.
Expr PerChannel(Expr v, int rank);
// Indices along an axis, of which negative ones count from the end.
Expr FromStart(Expr index, int64_t extent);
// x as [N, C, H, W] where it has one spatial axis: H is 1.
Expr WithHeight(Expr x);

}  // namespace halftone::onnx
