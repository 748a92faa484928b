// How far a kernel may be from the reference kernel, per class of op and dtype, with the reason.
//
// The reference computes in double and rounds once. A kernel for f32 computes in f32; one for a
// 16-bit type computes in f32 too and rounds once, so that it may land on a neighbour of the
// reference's result where f32's error crosses the middle between two values.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "halftone/core/tensor.h"

namespace halftone::testing {

enum class OpClass {
  // Selections, copies, comparisons; and + - * / sqrt, whose f32 result, rounded to 16 bit, is that
  // of one rounding, since 24 digits are at least twice 11 and two more. No tolerance.
  kExact,
  // exp, tanh, gelu, ...: approximations good to about 4 units of f32's last place; activations
  // lose digits where they cancel (gelu far below 0), hence the part relative to the largest value.
  kFunction,
  // Sums in another order: the error grows with the square root of the number of terms (up to about
  // 10^4 in the tables) and is relative to the largest result.
  kSum,
  // Products summed over hundreds of terms of either sign, by blocked library kernels.
  kContraction,
  // Statistics, then a formula of them: norms, softmax, losses, optimizer updates.
  kComposite,
};

// The class of an op. Every op has one; unknown names are kComposite.
OpClass OpClassOf(const std::string& op);

// |got - want| <= relative * |want| + absolute * (largest finite |want|) + smallest.
struct Tolerance {
  double relative = 0;
  double absolute = 0;
  double smallest = 0;  // one subnormal of the dtype
};
Tolerance ToleranceFor(OpClass op_class, DType dtype);

// What a case has beyond the tolerance of its op's class: a factor on that, a difference that all
// elements may have, and one in a 16-bit dtype as a share of the largest value, in units of the
// dtype's Epsilon, where a kernel rounds what it computes in between to that dtype.
struct Slack {
  double factor = 1;
  double absolute = 0;
  double of_largest_in_low = 0;
};

// Whether a kernel's result agrees with the reference's, naming the worst element if not. `slack`
// is the case's.
::testing::AssertionResult AgreesWithReference(const std::string& op, const Tensor& got,
                                               const Tensor& want, const Slack& slack = {});

}  // namespace halftone::testing
